"""torch-conformance lint: what it finds, what it proposes, and what --fix may write."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torch_conformance.lint import command as lint
from torch_conformance.lint import forms as lint_forms

TORCH = "import torch\n"

# A source (below a line that imports torch), and what the findings say, in order:
# (line, a part of the proposal, whether --fix mends it).
FOUND = {
    "argument": (
        "def test(device):\n    torch.ones(2, device='cuda')\n",
        [(2, "device", True)],
    ),
    "argument without a device around": (
        "def test():\n    torch.ones(2, device='cuda')\n",
        [(2, "torch.accelerator.current_accelerator()", True)],
    ),
    "default, evaluated at import": (
        "def make(device='cuda'):\n    pass\n",
        [(1, "take a `device` argument", False)],
    ),
    "method": ("def test(device):\n    (x + 1).cuda()\n", [(2, ".to(device)", True)]),
    "method with an index": ("def test(device):\n    x.cuda(1)\n", [(2, ".to(device)", False)]),
    "index": (
        "def test(device):\n    torch.device('cuda:1')\n",
        [(2, 'f"{torch.device(device).type}:1"', True)],
    ),
    "formatted": (
        "def test(device, rank):\n    torch.ones(1, device=f'cuda:{rank}')\n",
        [(2, "{torch.device(device).type}:", True)],
    ),
    "function": (
        "def test():\n    torch.cuda.synchronize()\n",
        [(2, "torch.accelerator.synchronize", True)],
    ),
    "function with a keyword": (
        "def test():\n    torch.cuda.synchronize(device=1)\n",
        [(2, "torch.accelerator.synchronize", False)],
    ),
    "function of the device module": (
        "def test():\n    torch.cuda.manual_seed_all(1)\n",
        [(2, "torch.get_device_module(device).manual_seed_all", False)],
    ),
    "CUDA's own": ("def test():\n    torch.cuda.nvtx.mark('x')\n", [(2, "CUDA's own", False)]),
    "guard": (
        "@unittest.skipIf(not torch.cuda.is_available(), 'no CUDA')\ndef test(device):\n    x.cuda()\n",
        [(1, "@onlyAccelerator", True), (3, ".to(device)", True)],
    ),
    "guard of what stays CUDA's": (
        "@unittest.skipIf(not torch.cuda.is_available(), 'no CUDA')\ndef test():\n    torch.cuda.nvtx.mark('x')\n",
        [(1, "torch.accelerator.is_available", False), (3, "CUDA's own", False)],
    ),
    "condition in a string": (
        "@pytest.mark.skipif('not torch.cuda.is_available()', reason='cuda')\ndef test():\n    pass\n",
        [(1, "@onlyAccelerator", False)],
    ),
    "decorator": (
        "from torch.testing._internal.common_device_type import onlyCUDA\n@onlyCUDA\ndef test(device):\n    pass\n",
        [(2, "@onlyAccelerator", True)],
    ),
    "capability": (
        "from torch.testing._internal.common_device_type import dtypesIfCUDA\n@dtypesIfCUDA(1)\ndef test(device):\n    pass\n",
        [(2, "@declared_dtypes", False)],
    ),
    "flag": (
        "from torch.testing._internal.common_utils import TEST_CUDA\n@unittest.skipIf(not TEST_CUDA, '')\ndef test():\n    pass\n",
        [(2, "TEST_ACCELERATOR", True)],
    ),
    "flag of another module": (
        "from torch.testing._internal.common_cuda import TEST_CUDA\nif TEST_CUDA:\n    pass\n",
        [(2, "TEST_ACCELERATOR", False)],
    ),
    "unused import": (
        "from torch.testing._internal.common_device_type import onlyCUDA\n",
        [(1, "take it out", False)],
    ),
    "alias": (
        "from torch import cuda as c\ndef test():\n    c.synchronize()\n",
        [(1, "torch.accelerator", False), (3, "torch.accelerator.synchronize", False)],
    ),
    "choice": (
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n",
        [(1, 'or torch.device("cpu")).type', True)],
    ),
    "comparison": ("def test(device):\n    return device == 'cuda'\n", [(2, "what the device can", False)]),
    "membership": ("def test(device):\n    return device in ('cuda', 'xpu')\n", [(2, "what the device can", False)]),
    "list": ("DEVICES = ['cpu', 'cuda']\n", [(1, "instantiate_device_type_tests", False)]),
    "only_for": (
        "instantiate_device_type_tests(Test, globals(), only_for='cuda')\n",
        [(1, "no only_for", False)],
    ),
    "autocast": (
        "def test(device):\n    torch.autocast('cuda')\n    torch.cuda.amp.autocast(enabled=True)\n",
        [(2, "torch.device(device).type", True), (3, "torch.autocast", True)],
    ),
    "backend": (
        "dist.init_process_group('nccl')\ndist.new_group(backend='nccl')\n",
        [(1, "get_default_backend_for_device", False), (2, "get_default_backend_for_device", False)],
    ),
    "attribute": ("def test(x):\n    return x.is_cuda\n", [(2, "x.device.type", False)]),
    "build": ("if torch.version.cuda:\n    pass\n", [(1, "what it can do", False)]),
    "backend's constant": (
        "x = torch.distributed.Backend.NCCL\n",
        [(1, "get_default_backend_for_device", False)],
    ),
    "patched": ("patch('torch.cuda.device_count')\n", [(1, "torch.accelerator.device_count", False)]),
}  # fmt: skip


def run(*arguments: str | Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    code = lint.main(["--json", *map(str, arguments)])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("case", FOUND)
def test_finds_and_proposes(case, tmp_path, capsys):
    source, expected = FOUND[case]
    path = tmp_path / "test_it.py"
    path.write_text(TORCH + source)
    code, result = run(tmp_path, capsys=capsys)
    assert code == 1
    found = [(f["line"] - 1, f["proposal"], f["fixable"]) for f in result["findings"]]
    assert [(line, fixable) for line, _, fixable in found] == [(n, f) for n, _, f in expected]
    for (_, proposal, _), (_, part, _) in zip(found, expected, strict=True):
        assert part in proposal
    assert {f["path"] for f in result["findings"]} == {str(path)}


def test_clean_file_exits_with_0(tmp_path, capsys):
    (tmp_path / "test_it.py").write_text(
        '"""Also on cuda."""\nimport torch\n\ndef test(device):\n'
        '    """device="cuda" in words only."""\n    torch.ones(1, device=device)  # .cuda()\n'
    )
    assert lint.main([str(tmp_path)]) == 0
    assert "0 findings in 0 of 1 files" in capsys.readouterr().out


def test_our_own_tests_are_tied_to_no_device(capsys):
    assert lint.main([str(Path(__file__).parent)]) == 0, capsys.readouterr().out


def test_marked_line_is_left_alone(tmp_path):
    (tmp_path / "test_it.py").write_text("torch.cuda.nvtx.mark('x')  # device-specific\n")
    assert lint.main([str(tmp_path)]) == 0


def test_guard_of_a_marked_line_stays(tmp_path, capsys):
    source = "import torch\ndef test():\n    if torch.cuda.is_available():\n        torch.cuda.nvtx.mark('x')  # device-specific\n"
    (tmp_path / "test_it.py").write_text(source)
    assert lint.main([str(tmp_path), "--fix"]) == 1
    assert (tmp_path / "test_it.py").read_text() == source


@pytest.mark.parametrize("case", [c for c in FOUND if any(f for _, _, f in FOUND[c][1])])
def test_fix_parses_mends_and_is_idempotent(case, tmp_path, capsys):
    source, expected = FOUND[case]
    path = tmp_path / "test_it.py"
    path.write_text(TORCH + source)
    code, result = run(tmp_path, "--fix", capsys=capsys)
    once = path.read_bytes()
    ast.parse(once)
    assert len(result["findings"]) == sum(not fixable for _, _, fixable in expected)
    assert result["fixed"] == sum(fixable for _, _, fixable in expected)
    assert code == (1 if result["findings"] else 0)
    assert run(tmp_path, "--fix", capsys=capsys)[1]["fixed"] == 0
    assert path.read_bytes() == once


def test_fixed_text(tmp_path):
    path = tmp_path / "test_it.py"
    path.write_bytes(
        b"# -*- coding: latin-1 -*-\r\nimport torch  # gr\xfc\xdfe\r\n\r\n"
        b"def test(device, rank):\r\n"
        b"    x = (a +\r\n         b).cuda( non_blocking=True )  # here\r\n"
        b"    y = torch.ones(1, device=f'cuda:{rank}', dtype = torch.float32)\r\n"
        b"    with torch.cuda.amp.autocast(dtype=torch.float16): pass\r\n"
    )
    assert lint.main([str(path), "--fix"]) == 0
    assert path.read_bytes() == (
        b"# -*- coding: latin-1 -*-\r\nimport torch  # gr\xfc\xdfe\r\n\r\n"
        b"def test(device, rank):\r\n"
        b"    x = (a +\r\n         b).to(device,  non_blocking=True )  # here\r\n"
        b"    y = torch.ones(1, device=f'{torch.device(device).type}:{rank}', dtype = torch.float32)\r\n"
        b"    with torch.autocast(torch.device(device).type, dtype=torch.float16): pass\r\n"
    )


def test_fixed_code_runs_on_this_machine(tmp_path):
    """What was tied to CUDA runs on whatever accelerator is there."""
    path = tmp_path / "test_it.py"
    path.write_text(
        "import torch\n\ndef test():\n    if torch.cuda.is_available():\n"
        "        x = torch.ones(2, device='cuda').cuda()\n        y = x.to(f'cuda:{0}') + 1\n"
        "        torch.cuda.synchronize()\n        assert y.tolist() == [2.0, 2.0]\n        print('ran')\n"
        "test()\n"
    )
    assert lint.main([str(path), "--fix"]) == 0
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == ("ran" if torch.accelerator.is_available() else "")


BROKEN = {
    "syntax": (b"def test(:\n", 1),
    "python 2": (b"x = 1\nprint 'x'\n", 2),
    "null": (b"x = 1\0\n", 1),
    "not utf-8": (b"x = '\xff\xfe'\n", 1),
    "unknown encoding": (b"# coding: klingon\n", 1),
    "nested": (b"x = " + b"(" * 5000 + b")" * 5000 + b"\n", 1),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_unparsable_file_is_named_and_the_rest_goes_on(kind, tmp_path, capsys):
    content, line = BROKEN[kind]
    (tmp_path / "a_broken.py").write_bytes(content)
    (tmp_path / "b_good.py").write_text("x.cuda()\n")
    code, result = run(tmp_path, "--fix", capsys=capsys)
    assert code == 1
    assert [f["path"] for f in result["findings"]] == [str(tmp_path / "b_good.py")]
    (problem,) = result["unexamined"]
    assert problem["path"] == str(tmp_path / "a_broken.py")
    assert problem["line"] == line
    assert problem["message"]
    assert (tmp_path / "a_broken.py").read_bytes() == content


def test_unparsable_alone_is_no_success(tmp_path, capsys):
    (tmp_path / "broken.py").write_text("def\n")
    assert lint.main([str(tmp_path)]) == 1
    assert "broken.py:1: cannot be examined: " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_wrong_tree_is_a_usage_error(name, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        lint.main([str(tmp_path / name)])
    assert ended.value.code == 2
    assert "give a folder" in capsys.readouterr().err


def test_hidden_folders_environments_and_dangling_links(tmp_path, capsys):
    for folder in (".git", "env", "__pycache__", "good"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_x.py").write_text("x.cuda()\n")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    _, result = run(tmp_path, capsys=capsys)
    assert [f["path"] for f in result["findings"]] == [str(tmp_path / "good" / "test_x.py")]
    assert [p["path"] for p in result["unexamined"]] == [str(tmp_path / "gone.py")]


def test_on_the_tests_that_ship_with_torch(tmp_path, capsys):
    """A large real tree: nothing crashes, and what --fix writes parses and stays as it is."""
    origin = Path(torch.__file__).parent / "testing" / "_internal"
    for name in (
        "distributed/distributed_test.py",
        "common_cuda.py",
        "common_nn.py",
        "common_device_type.py",
    ):
        shutil.copy(origin / name, tmp_path)
    before = run(tmp_path, capsys=capsys)[1]
    assert len(before["findings"]) > 500
    assert not before["unexamined"]
    after = run(tmp_path, "--fix", capsys=capsys)[1]
    assert after["fixed"] >= 50
    assert not after["unexamined"]
    texts = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(tmp_path, "--fix", capsys=capsys)[1]["fixed"] == 0
    assert texts == {path: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(("ours", "theirs"), lint_forms.ACCELERATOR.items())
def test_proposed_functions_exist(ours, theirs):
    assert hasattr(torch.cuda, ours)
    assert hasattr(torch.accelerator, theirs)


def test_proposed_names_exist():
    from torch_conformance import testing

    for row in lint_forms.NAMES:
        if row.instead:
            module = __import__(row.module, fromlist=[row.instead])
            assert hasattr(module, row.instead)
    texts = [row.proposal for row in lint_forms.NAMES] + [text for _, text in lint_forms.CUDA_NAMES]
    for word in {w.strip(",.") for text in texts for w in text.replace("(", " ").split()}:
        if word.startswith(("@requires_", "@declared_")) and word != "@requires_":
            assert hasattr(testing, word[1:]), word


def test_needs_no_torch():
    code = (
        "import sys; from torch_conformance.lint import command; sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
