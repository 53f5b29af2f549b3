# tests/tools/test_torch_audit.py: the audit names what a torch lacks or has otherwise, and nothing else.
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import torch_audit
import torch_uses
from torch_headers import Headers, conditional, declarations

ROOT = Path(__file__).resolve().parents[2]


def audit(*arguments: object) -> tuple[int, list[str], str]:
    command = [sys.executable, str(ROOT / "tools/torch-audit"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def package() -> Path:
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture
def patched(tmp_path: Path, package: Path) -> Path:
    """A copy of the package's headers and operators that a test may change, without Python."""
    folder, native = tmp_path / "torch", "include/ATen/native"
    (folder / "include/ATen").mkdir(parents=True)
    shutil.copy(package / "version.py", folder)
    for one in [*(package / "include").iterdir(), *(package / "include/ATen").iterdir()]:
        place = folder / one.relative_to(package)
        if not place.exists() and one.name != "native":
            place.symlink_to(one)
    shutil.copytree(package / native, folder / native)
    packaged = "torchgen/packaged/ATen/native"
    shutil.copytree(package.parent / packaged, tmp_path / packaged)
    return folder


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_the_installed_torch_has_all_that_we_rely_on(package):
    assert audit("--python", sys.executable, "--against", sys.executable)[:2] == (0, [])


def test_an_unchanged_copy_has_no_findings_and_says_what_was_not_examined(patched, package):
    status, lines, said = audit("--torch", patched, "--against", package)
    assert (status, lines) == (0, [])
    assert "not examined: names in Python" in said


def test_names_the_renamed_the_changed_and_the_removed(patched, package):
    native = patched / "include/ATen/native"
    change(native / "ConvUtils.h", "conv_input_size", "conv_sizes_of_input")
    change(
        native / "LossMulti.h",
        "multi_margin_loss_shape_check(",
        "multi_margin_loss_shape_check(bool strict, ",
    )
    change(
        native / "TensorAdvancedIndexing.h",
        "using gather_fn = void (*)(",
        "using gather_fn = void (*)(bool, ",
    )
    change(native / "UnaryOps.h", " exp_stub)", " exponent_stub)")
    (native / "RangeUtils.h").unlink()
    listed = patched.parent / "torchgen/packaged/ATen/native/native_functions.yaml"
    change(listed, "- func: linalg_matrix_exp(", "- func: linalg_exp(")
    change(listed, "- func: _pdist_backward(", "- func: _pdist_backward(int extra, ")
    status, lines, _ = audit("--torch", patched, "--against", package)
    assert status == 1
    found = dict(line.split(": ", 1) for line in lines)
    wanted = {
        "convolution.h": [
            "does not declare at::native::conv_input_size",
            "it has at::native::conv_",
        ],
        "loss.h": ["multi_margin_loss_shape_check changed", "bool strict, "],
        "index.h": ["gather_stub changed", "void(*)(bool, "],
        "op_table_unary.cpp": ["declares no stub at::native::exp_stub"],
        "operators.json (refusing)": ["no operator linalg_matrix_exp"],
        "ops/distance.cpp": ["operator _pdist_backward changed", "int extra"],
    }
    for name, parts in wanted.items():
        texts = [text for place, text in found.items() if name in place]
        assert any(all(part in text for part in parts) for text in texts), (name, lines)
    ranges = [line for line in lines if "factories.h" in line]
    assert any("no header ATen/native/RangeUtils.h" in line for line in ranges)
    assert any("does not declare at::native::compute_arange_size" in line for line in ranges)


def python_after(folder: Path, statements: str) -> Path:
    """A Python of this environment that runs statements when it starts."""
    (folder / "sitecustomize.py").write_text(f"import torch\n{statements}\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


def test_names_what_python_has_no_more_or_otherwise(tmp_path):
    python = python_after(
        tmp_path,
        "torch._C.all_names = torch._C.__dict__.pop('_dispatch_get_all_op_names')\n"
        "torch._validated = torch.serialization.__dict__.pop('_validate_device')\n"
        "torch._register_device_module = lambda module: None\n"
        "import torch._functorch.config as config\n"
        "del config._config['force_non_lazy_backward_lowering']",
    )
    status, lines, said = audit("--python", python, "--against", sys.executable)
    assert status == 1, said
    [name] = [line for line in lines if line.endswith("for all_operator_names")]
    assert name.startswith("conformance/torch_conformance/private_names.py:")
    assert "no torch._C:_dispatch_get_all_op_names" in name
    [name] = [line for line in lines if line.endswith("for validated_location")]
    assert name.startswith("python/torch_graft/private_names.py:")
    assert any("register_device_module changed" in line and "(module)" in line for line in lines)
    assert any(
        "no force_non_lazy_backward_lowering of torch._functorch.config" in line for line in lines
    )
    assert len(lines) == 4


def test_a_listed_operator_that_torch_lacks_is_found(tmp_path, package, monkeypatch):
    data = json.loads(torch_uses.LISTED.read_text())
    bounded = [{"name": "later", "since": "2.99"}, {"name": "gone", "before": "2.13"}]
    data["refusing"]["operators"] += ["no_such.operator", *bounded]
    data["skipped_headers"]["parts"].append("NoSuchHeader")
    (tmp_path / "operators.json").write_text(json.dumps(data))
    monkeypatch.setattr(torch_uses, "LISTED", tmp_path / "operators.json")
    torch = torch_audit.Torch(package, None)
    found = [str(one) for one in torch_audit.audit(torch)]
    assert [line.split(": ")[0] for line in found] == [
        "src/torch/version/operators.json (skipped_headers)",
        "src/torch/version/operators.json (refusing)",
    ]
    assert "no operator no_such.operator" in found[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--torch", "/nonexistent"], "no folder of the package torch"),
        (["--python", "/bin/true"], "has no torch"),
        (["--unknown"], "unrecognized arguments"),
        (["--torch", "/nonexistent", "--python", "/bin/true"], "not allowed with"),
    ],
)
def test_wrong_usage(arguments, said):
    status, lines, error = audit(*arguments)
    assert (status, lines) == (2, [])
    assert said in error


def test_a_build_takes_the_newest_file_of_minor_that_is_not_newer(tmp_path, monkeypatch):
    (tmp_path / "minor").mkdir()
    for name in ("2_13.h", "2_9.h", "2_15.h"):
        (tmp_path / "minor" / name).write_text("")
    monkeypatch.setattr(torch_uses, "SEAM", tmp_path)
    chosen = {v: torch_uses.minor_header(v) for v in ("2.8.1", "2.9.0", "2.14.1", "2.16.0a0")}
    assert [one and one.name for one in chosen.values()] == [None, "2_9.h", "2_13.h", "2_15.h"]


HEADER = """
#if !defined(STABLE)
namespace at::native {
using stub_fn = void (*)(const at::Tensor& x, int64_t n);
DECLARE_DISPATCH(stub_fn, a_stub)
DECLARE_DISPATCH(void (*)(bool), b_stub)
enum class Kind { A, B };
TORCH_API c10::optional<int> f(const Tensor& x,   IntArrayRef y = {1, 2});
namespace inner {
template <int n> static inline void g(Tensor x) { if (x) { h(n); } }
#ifdef USE_XPU
void g(int);
#else
void other();
#endif
}  // namespace inner
struct TORCH_API Box final : public Base {
 public:
  Box(int a) : a_(a) {}
  int get() const { return a_; }
 private:
  int a_;
};
// void commented();
Tensor make(int a), x = f(1);
constexpr int kCount = 3;
}
#else
#error "no"
#endif
"""


def test_reads_declarations():
    found = {one.name: one.form for one in declarations(HEADER, "a.h")}
    assert found["at::native::a_stub"] == "DispatchStub of void(*)(const Tensor& x, int64_t n)"
    assert found["at::native::b_stub"] == "DispatchStub of void(*)(bool)"
    assert found["at::native::Kind"] == "enum class{A, B}"
    assert found["at::native::f"] == "optional<int>(const Tensor& x, IntArrayRef y={1, 2})"
    assert found["at::native::inner::g"] == "template<int n>void(Tensor x)"
    assert found["at::native::inner::other"] == "void()"
    assert "get int()const" in found["at::native::Box"]
    assert found["at::native::kCount"] == "variable int"
    assert not [name for name in found if "commented" in name or name.endswith("::h")]


def test_two_parameters_that_change_places_are_seen():
    forms = [
        next(declarations(f"void f({given});", "a.h")).form
        for given in ("int a, int b", "int b, int a")
    ]
    assert forms[0] != forms[1]


def test_conditions_are_those_of_a_build_without_macros():
    text = "#ifndef A\n1\n#elif defined(B)\n2\n#endif\n#if defined(A) || X > 3\n3\n#elif !defined(C)\n4\n#else\n5\n#endif\n"
    assert conditional(text).split() == ["1", "4"]


def test_headers_are_followed_within_aten(tmp_path):
    files = {
        "ATen/native/A.h": "#include <ATen/native/B.h>\n#include <ATen/Functions.h>\n",
        "ATen/native/B.h": '#include "ATen/Nested.h"\n', "ATen/Nested.h": "", "ATen/Functions.h": "",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    reached = Headers(tmp_path).reached(["ATen/native/A.h", "ATen/native/Gone.h"])
    assert reached == ["ATen/native/A.h", "ATen/native/B.h", "ATen/Nested.h"]
