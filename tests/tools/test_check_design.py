# tests/tools/test_check_design.py: each rule can fail, and passes good text.
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import check_design as design
import house_rules as house
import patch_rules as patches
import setting_rules as settings
import text_rules as texts

TOOLS = Path(__file__).resolve().parents[2] / "tools"

HEAD = "// {}: a file for a test.\n"


def make_tree(root: Path, files: dict[str, str]) -> design.Tree:
    """A git repository with these files; C files get the first line that the rules ask for."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(
            HEAD.format(path) + text if path.endswith((".h", ".cpp")) else text
        )
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    return design.Tree(root)


# The two writes that one file may make.
SLOT = "python/torch_graft/ve/__init__.py"
SLOT_PATCHES = """import copy
import torch
torch.UntypedStorage.ve = 1
copy._deepcopy_dispatch[torch.UntypedStorage] = 1
"""

WRITER = f"{patches.INTEGRATIONS}a.py"
# Each writes into a library; the last two as an integration may.
LIBRARY_WRITES = [
    "import accelerate\naccelerate.a = 1\n", "from lightning.pytorch import Trainer as T\nT.fit = None\n",
    "def f():\n    import fastai.vision\n    del fastai.vision.b\n",
    "import safetensors as s\nsetattr(s.torch, 'a', 1)\n",
    "from accelerate import Accelerator\nchanges.replace(Accelerator, 'a', 1)\n",
    "from accelerate.utils import modeling\nold = modeling.a\nchanges.replace_function(old, 1)\n",
]  # fmt: skip
TORCH_CHANGES = [
    "import torch\nchanges.replace(torch.nn.Linear, 'forward', 1)\n", "import torch\ntorch.b = 1\n",
    "from torch.nn.attention import flex_attention as f\nchanges.replace(f, '_validate_device', 1)\n",
    "import torch\nold = torch.compile\nchanges.replace_function(old, 1)\n",
    "import torch\nchanges.put(torch.a, 'b', 1)\n",
]  # fmt: skip

SEAM = "python/torch_graft/private_names.py"
TABLE = 'TORCH: dict[str, str] = {"a": "torch:_a", }\n\ndef module_of(name): ...\n'
USES = "from torch_graft import private_names as inside\ninside.a(inside.module_of('a'))\n"
# Each a use of what is private to torch.
PRIVATE = [
    "import torch._dynamo\n",
    "from torch._C import DispatchKey\n",
    "from torch.utils import _pytree\n",
    "import torchgen\n",
    "import torch\ntorch._C.f()\n",
    "import torch\nf(torch.serialization._validate_device(1)).b\n",
    "import torch.nn as nn\nnn._reduction\n",
    "from torch import fx\nfx._lazy_graph_module\n",
    "def f(tensor, _version):\n    _base = 1\n    return tensor._base\n",
    "def f(tensor):\n    return tensor.a()._version\n",
    "def f(x):\n    return getattr(x, '_cdata', None)\n",
    "NAME = 'torch._inductor.codegen'\n",
    "from torch_graft import private_names\n",
    "from torch_graft.private_names import a\n",
]

# A layer whose folder b may include a.
LAYOUT = {house.LAYOUT: "| `kernels` | a < {b, c} |\n"}
ARROW = {house.LAYOUT: LAYOUT[house.LAYOUT] + "| `kernels/a` | `b` | why |\n"}

# A table of two settings, and code that reads them.
ROWS = (
    '{"ours": [\n'
    '    ["GRAFT_A", "core, binding", "a number", "1", "the number of it"],\n'
    '    ["GRAFT_B", "x driver, tests, build", "a path", "none", "the place of it"]\n'
    "]}\n"
)
SETTINGS = {
    settings.TABLE: ROWS,
    "python/torch_graft/b.py": "# python/torch_graft/b.py: reads\nimport os\n"
    'NAME = "GRAFT_A"\nFOUND = os.environ.get(NAME), os.environ["HOME"], NAME in os.environ\n',
    "src/runtime/e.cpp": 'const char* a = std::getenv("GRAFT_A");\n',
    "drivers/x/settings.cpp": "const char* text(const char* name) { return getenv(name); }\n"
    'const char* a = text("GRAFT_B");\n',
    "tests/b.h": 'constexpr const char* kName = "GRAFT_B";\nconst char* a = getenv(kName);\n',
    "cmake/a.cmake": "# cmake/a.cmake: reads\nset(a $ENV{GRAFT_B})\n",
}


def folder(path: str, *files: str) -> dict[str, str]:
    """A folder with a README and these files, each with nothing in it."""
    return {f"{path}/{name}": "" for name in ("README.md", *files)}


def quoted(lines: int) -> str:
    """A string of so many lines, as Python text."""
    return "'''{a}" + "\n" * (lines - 1) + "'''\n"


# Two folders with modules that tests import by name.
MODULES = {
    "pyproject.toml": "# pyproject.toml: paths\n[tool.pytest.ini_options]\n"
    'pythonpath = ["tests/a", "tests/b"]\n',
    **{f"tests/{name}": "" for name in ("a/one.py", "b/two.py", "a/test_a.py", "b/test_a.py")},
}
# A room of tests; its longest string has as many lines as may be.
GRAPHS = {
    **folder("tests/python", "conftest.py"),
    **folder("tests/python/graphs", "test_graphs.py", "test_replay.py"),
    "tests/python/graphs/walk.py": '"""What walks the graphs."""\n' + "CODE = " + quoted(60),
}
# Each a text that sends a user of another device name to what is not there.
DEFAULT_NAMES = [
    *({"src/torch/a.cpp": f"const char* a = {text};\n"} for text in (
        '"call torch.graft.empty_cache()"', '"graft:0 is lost"', '"a graft device"', 'R"(to device=\'graft\')"')),
    {"drivers/x/a.cpp": 'const char* a = "graft:{} is lost";\n'},
    {"python/torch_graft/a.py": 'TEXT = f"torch.graft.{name}"\n'},
    {"python/torch_graft/a.py": 'def f():\n    """As torch.graft\'s."""\n'},
]  # fmt: skip
# Each a phrase that no page for users or vendors may hold, also across two lines.
FILLERS = [
    "A copy is told to emit.\n", "What waits is\ntold of.\n", "It is 30 unless told.\n",
    "The tensor lies there.\n", "A thread of its own\n", "Pools of one's\nown\n",
    "It waits, too.\n", "`x` works, too\n", "Nobody waits.\n", "whoever waits\n",
    "it stays when that ends. NOT_FOUND: it had.\n", "than can be told apart\n",
    "until at most most are left\n", "operators of others than PyTorch\n",
    "it is there, in another way, which is said\n", "for what is none of these\n",
    "Who does not answer is named.\n",
]  # fmt: skip
BODY = "  x();\n"
BAD = [
    *((texts.default_device_names, files) for files in DEFAULT_NAMES),
    (design.file_sizes, {"src/runtime/a.cpp": "int a;\n" * 400}),
    (design.function_sizes, {"src/runtime/a.cpp": "void f() {\n" + BODY * 60 + "}\n"}),
    (design.function_sizes, {"tools/a.py": "def f():\n" + "    x()\n" * 60}),
    (design.special_sizes, {"drivers/null/null.cpp": "int a;\n" * 60}),
    (design.special_sizes, {"tests/drivers/tiny.c": "int a;\n" * 151}),
    (design.special_sizes, {"src/codegen/dialects/vendor_c.cpp": "int a;\n" * 80}),
    (design.include_direction, {"src/runtime/a.h": '#include "kernels/b.h"\n'}),
    (design.include_direction, {"src/kernels/a.cpp": "#include <ATen/ATen.h>\n"}),
    (design.include_direction, {"src/compiler/a.cpp": '#include "torch/tensor/view.h"\n'}),
    (design.include_direction, {"drivers/host/a.cpp": '#include "runtime/platform/device.h"\n'}),
    (design.include_direction, {"drivers/a/a.cpp": '#include "../b/b.h"\n', "drivers/b/b.h": ""}),
    (design.include_direction, {"include/graft/driver.h": '#include "runtime/a/device.h"\n'}),
    (design.comment_shares, {"include/graft/driver.h": "int a;\n" * 40}),
    (design.comment_shares, {"src/runtime/a.h": "// why\n" * 30 + "int a;\n" * 20}),
    (design.comment_shares, {"src/runtime/a.h": "int a;\n" * 40}),
    (design.comment_shares, {"src/runtime/a.cpp": "// why\nint a;\nint b;\n" * 20}),
    (design.first_lines, {"tools/run.sh": "#!/bin/sh\nset -e\n"}),
    (design.first_lines, {"python/a.py": "import os\n"}),
    (design.first_lines, {"src/CMakeLists.txt": "# something else\n"}),
    (design.vague_names, {"src/runtime/string_utils.cpp": ""}),
    (design.vague_names, {"src/common/a.h": ""}),
    (design.vague_names, {"python/device_manager.py": ""}),
    (patches.monkeypatches, {"python/a.py": "import torch\ntorch.nn.Linear.forward = None\n"}),
    (patches.monkeypatches, {"python/a.py": "from torch import nn as n\nn.Linear.x += 1\n"}),
    (patches.monkeypatches, {"python/a.py": "import torch\nsetattr(torch, 'a', 1)\n"}),
    (patches.monkeypatches, {"python/a.py": "import sys\nsys.modules['torch.graft'] = None\n"}),
    (patches.monkeypatches, {"python/a.py": "import torch\na, torch.b = 1, 2\n"}),
    (patches.monkeypatches, {"python/a.py": "import torch\ndel torch.cuda\n"}),
    (patches.monkeypatches, {"python/a.py": "import copy\ncopy._deepcopy_dispatch[int] = None\n"}),
    (patches.monkeypatches, {"python/a.py": SLOT_PATCHES}),
    (patches.monkeypatches, {SLOT: SLOT_PATCHES + "torch.UntypedStorage.ve = 2\n"}),
    (patches.monkeypatches, {SLOT: SLOT_PATCHES + "torch.UntypedStorage.cuda = 2\n"}),
    (patches.monkeypatches, {SLOT: "import torch\ntorch.UntypedStorage.ve = 1\n"}),
    *((patches.library_writes, {"python/a.py": code}) for code in LIBRARY_WRITES),
    *((patches.library_writes, {WRITER: code}) for code in LIBRARY_WRITES[:4]),
    *((patches.monkeypatches, {WRITER: code}) for code in TORCH_CHANGES),
    (patches.import_hooks, {"python/a.py": "import sys\nsys.meta_path.insert(0, None)\n"}),
    (patches.import_hooks, {"python/a.py": "from sys import path_hooks\n"}),
    (patches.import_hooks, {"python/a.py": "import builtins\nbuiltins.__import__ = print\n"}),
    (
        patches.import_hooks,
        {
            "python/a.py": "from importlib import abc\n\n\nclass A(abc.MetaPathFinder):\n    pass\n",
        },
    ),
    (
        design.driver_lists,
        {
            "drivers/one/d.cpp": "",
            "drivers/two/d.cpp": "",
            "src/runtime/a.cpp": 'const char* names[] = {"one", "two"};\n',
        },
    ),
    (design.language_share, {"src/runtime/a.cpp": "int a;\n", "python/a.py": "a = 1\n"}),
    (
        design.listed_skips,
        {"tests/test_a.py": "import pytest\n\ndef test_b():\n    pytest.skip()\n"},
    ),
    (
        design.listed_skips,
        {"tests/test_a.py": "import pytest\n\n@pytest.mark.xfail\ndef test_b():\n    pass\n"},
    ),
    (design.listed_skips, {"tests/a/a_test.cpp": "TEST(A, B) { GTEST_SKIP(); }\n"}),
    (
        design.listed_skips,
        {"tests/expectations.toml": '[[expectation]]\ntest = "tests/gone.py"\nkind = "skip"\n'},
    ),
    (design.machine_paths, {"README.md": "see /" + "root/project\n"}),
    (design.native_names, {"src/torch/a.cpp": "#include <ATen/native/Pow.h>\n"}),
    (design.native_names, {"src/torch/a.h": "#include <ATen/ops/view_native.h>\n"}),
    (design.native_names, {"src/torch/ve/a.cpp": "#include <torch/csrc/Generator.h>\n"}),
    (design.native_names, {"src/torch/a.cpp": '#include "c10/core/impl/COW.h"\n'}),
    (design.native_names, {"src/torch/a.cpp": "int a = at::native::b();\n"}),
    (design.native_names, {"src/torch/a.cpp": "namespace at { namespace native {}}\n"}),
    (design.native_names, {"src/torch/version/a.h": "using at::native::b;\n" * 2}),
    (
        design.native_names,
        {
            "src/torch/version/a.h": "using at::native::b;\n",
            "src/torch/version/minor/2_15.h": "using at::native::b;\n",
        },
    ),
    (design.python_names, {"src/torch/a.py": "from torchgen.model import DispatchKey\n"}),
    *(
        (design.python_names, {SEAM: TABLE, "python/torch_graft/a.py": text + USES})
        for text in PRIVATE
    ),
    (design.python_names, {SEAM: TABLE, "python/torch_graft/a.py": USES + "inside.gone()\n"}),
    (design.python_names, {SEAM: TABLE}),
    (
        design.python_names,
        {
            SEAM: TABLE.replace("}", '"b": "torch:_a"}'),
            "python/torch_graft/a.py": USES + "inside.b()\n",
        },
    ),
    (
        design.python_names,
        {SEAM: TABLE.replace("}", '"a": "torch:_b"}'), "python/torch_graft/a.py": USES},
    ),
    (house.folder_sizes, folder("src/kernels/a", "b.h")),
    (house.folder_sizes, folder("src/kernels/a", *(f"f{n}.h" for n in range(30)))),
    (house.folder_sizes, folder("python/torch_graft/a", "b.py")),
    (house.folder_sizes, folder("python/torch_graft", *(f"f{n}.py" for n in range(30)))),
    (house.folder_order, LAYOUT | {"src/kernels/a/d.h": '#include "kernels/b/e.h"\n'}),
    (house.folder_order, LAYOUT | {"src/kernels/b/d.cpp": '#include "kernels/c/e.h"\n'}),
    (house.folder_order, LAYOUT | {"src/kernels/d/d.cpp": "int a;\n"}),
    (house.folder_order, LAYOUT | {"src/compiler/a/d.cpp": "int a;\n"}),
    (house.folder_order, ARROW | {"src/kernels/b/d.h": '#include "kernels/a/e.h"\n'}),
    (house.repeated_names, {"src/kernels/sort/sort_key.h": ""}),
    (house.repeated_names, {"tests/python/graphs/test_graphs_replay.py": ""}),
    (house.repeated_names, {"tests/python/graphs/test_graph_states.py": ""}),
    (house.repeated_names, {"tests/python/graphs/graphs_captured.py": ""}),
    (house.repeated_names, {"python/torch_graft/device/device_memory.py": ""}),
    (house.readmes, {"src/kernels/sort/key.h": ""}),
    (house.readmes, {"python/torch_graft/device/memory.py": ""}),
    (house.readmes, {"tests/python/graphs/test_replay.py": ""}),
    (house.folder_sizes, folder("tests/python/a", "test_b.py")),
    (house.folder_sizes, folder("tests/tools", *(f"test_{n}.py" for n in range(30)))),
    (house.one_module_one_name, MODULES | {"tests/b/one.py": "", "tests/a/one.py": ""}),
    (house.found_modules, MODULES | {"tests/c/d.py": "", "tests/a/test_e.py": "import d\n"}),
    (house.programs_in_strings, {"tests/test_a.py": "CODE = " + quoted(61)}),
    (house.programs_in_strings, {"tests/test_a.py": "CODE = f" + quoted(61)}),
    (house.named_files, {"src/kernels/a.h": "int a;  // as in gone.h\n"}),
    (house.dead_links, {"docs/a.md": "See [b](../src/b.md).\n"}),
    (house.named_files, {"docs/a.md": "See `src/kernels/gone.cpp`.\n"}),
    *((house.plain_words, {"docs/use/a.md": text}) for text in FILLERS),
    (house.plain_words, {"docs/drivers/a.md": FILLERS[0]}),
    (house.plain_words, {"include/graft/a.h": f"// {FILLERS[0]}"}),
    (house.plain_words, {"README.md": FILLERS[0]}),
    (house.mirrored_tests, {"tests/kernels/a/b_test.cpp": "", "src/kernels/c/b.cpp": ""}),
    (settings.declared_settings, {"src/runtime/a.cpp": 'auto a = getenv("GRAFT_A");\n'}),
    (settings.declared_settings, SETTINGS | {"src/runtime/a.cpp": 'auto a = getenv("GRAFT_C");\n'}),
    (settings.declared_settings, SETTINGS | {"src/runtime/a.cpp": 'auto a = getenv("GRAFT_B");\n'}),
    (settings.declared_settings, SETTINGS | {"src/torch/a.cpp": "auto a = getenv(b.c_str());\n"}),
    (
        settings.declared_settings,
        SETTINGS | {"src/kernels/a.cpp": "int f(const char* n) { return *getenv(n); }\n"},
    ),
    (
        settings.declared_settings,
        SETTINGS
        | {
            "drivers/y/a.cpp": "auto g = [](const char* n) { return getenv(n); };\n"
            'auto a = g("GRAFT_B");\n'
        },
    ),
    *(
        (settings.declared_settings, SETTINGS | {"python/torch_graft/a.py": f"import os\n{text}\n"})
        for text in (
            "os.environ['GRAFT_B']",
            "os.getenv('GRAFT_C', '')",
            "N = 'GRAFT_C'\nif N in os.environ:\n    pass",
        )
    ),
    (
        settings.declared_settings,
        SETTINGS | {f"{settings.SHOWN}a.py": "import os\nos.environ['GRAFT_C']\n"},
    ),
    *(
        (settings.read_settings, {k: v for k, v in SETTINGS.items() if k != gone})
        for gone in SETTINGS
        if gone != settings.TABLE
    ),
    (settings.read_settings, SETTINGS | {settings.TABLE: ROWS.replace("GRAFT_B", "GRAFT_A")}),
    (
        house.one_type_one_name,
        {
            "src/kernels/a.h": "struct GRAFT_EXPORT S {\n};\n",
            "src/runtime/a.h": "class S : B {\n};\n",
        },
    ),
    (
        house.one_class_one_file,
        {"src/runtime/a.cpp": "int S::f() { return 1; }\n", "src/runtime/b.cpp": "S::~S() {}\n"},
    ),
]


@pytest.mark.parametrize(("rule", "files"), BAD)
def test_finds_the_fault(rule, files, tmp_path):
    assert list(rule(make_tree(tmp_path, files)))


def test_command_fails_on_a_fault_and_passes_a_good_tree(tmp_path):
    def run(root: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(TOOLS / "check_design.py"), str(root)]
        return subprocess.run(command, capture_output=True, text=True)

    good_files = {"src/runtime/a.cpp": "int a;\n", "src/runtime/a.h": ""}
    make_tree(tmp_path / "good", folder("src/runtime") | good_files)
    make_tree(tmp_path / "bad", {"src/runtime/a.cpp": '#include "torch/b.h"\n'})
    good, bad = run(tmp_path / "good"), run(tmp_path / "bad")
    assert good.returncode == 0, good.stdout
    assert bad.returncode == 1
    assert "src/runtime/a.cpp:2: src/runtime must not include torch/b.h" in bad.stdout


FOLDERS = ("drivers/one", "drivers/two", "drivers/x", "python", "tests", "tests/a", "tests/b")
GOOD = {
    **{path: "" for place in FOLDERS for path in folder(place, "a.txt", "b.txt")},
    house.LAYOUT: ARROW[house.LAYOUT] + "| `torch` | version < ops |\n",
    **folder("src/kernels", "d.h"),
    **folder("src/kernels/a", "main.cpp"),
    **folder("src/kernels/b", "b.h", "b.cpp"),
    **folder("src/runtime", "e.h"),
    **folder("src/torch"),
    **folder("docs"),
    **folder("docs/develop", "b.md"),
    **folder("src/torch/version"),
    **folder("tests/kernels/b", "b_test.cpp", "one.h"),
    **MODULES,
    **GRAPHS,
    **folder("python/torch_graft"),
    **folder("python/torch_graft/ve", "b.py"),
    **folder("python/torch_graft/cli"),
    **SETTINGS,
    f"{settings.SHOWN}a.py": f"# {settings.SHOWN}a.py: shows\nimport os\nos.environ['GRAFT_B']\n",
    "README.md": "# a\nLists are too long, too short or empty; as untold as they belie.\n",
    "docs/a.md": "It lies there, too. See [kernels](../src/kernels/README.md#a), [src](../src), [a](https://a.b/c), `b/b.h`, `src/kernels/a/d.h` and `swish.cpp`.\n",
    "src/kernels/a/d.h": '#include "kernels/b/b.h"\nstruct Same;\nstruct One {\n};\n',
    "src/kernels/b/d.cpp": '#include "kernels/a/d.h"\nstruct One {\n};\n',
    "src/torch/a.cpp": '#include <ATen/ATen.h>\n#include "kernels/b.h"\n',
    "src/kernels/b.h": '#include "runtime/c.h"\n',
    "drivers/one/d.cpp": '#include "graft/driver.h"\n#include "queue.h"\n#include <CL/cl.h>\n',
    "drivers/one/queue.h": "",
    "drivers/two/d.cpp": "",
    "src/runtime/c.h": '// "one" and "two" in a comment\nconst char* kDefault = "one";\n',
    SLOT: f"# {SLOT}: what it may write\n{SLOT_PATCHES}",
    "python/a.py": "# python/a.py: its own names\nimport torch\na = torch.ones(1)\na.b = 1\n",
    **folder(patches.INTEGRATIONS[:-1], "b.txt"),
    WRITER: f"# {WRITER}: changes\nimport os\nimport torch\n"
    "from accelerate import Accelerator\nmodule = torch.get_device_module('a')\n"
    "changes.replace(Accelerator, 'a', module)\nchanges.put(os.environ, 'A', 'b')\n",
    SEAM: f"# {SEAM}: a table\n{TABLE}",
    "python/torch_graft/a.py": (
        f"# python/torch_graft/a.py: its own\nimport os\n{USES}class A:\n    _kept = 1\n\n"
        "    def f(self, row):\n        self._b = row._asdict()\n        os._exit(row._kept + self._b)\n"
    ),
    "src/torch/version/a.h": "#include <ATen/native/Pow.h>\nusing at::native::pow;\n",
    "src/torch/version/minor/2_13.h": "using at::native::b;\n",
    "src/torch/version/minor/2_15.h": "using at::native::b;\n",
    "src/torch/version/names.py": "# src/torch/version/names.py: of torchgen\nimport torchgen\n",
    "src/torch/d.cpp": '// torch.graft.a, graft:0\nconst char* a = "graft: warning: Graft, graft:all_reduce";\n',
    "src/torch/c.cpp": "// at::native::b\nnamespace at { int native; }\n",
    "tests/test_a.py": "# tests/test_a.py: a skip\nimport pytest\n\ndef test_b():\n"
    "    pytest.skip()\n",
    "tests/expectations.toml": (
        "# tests/expectations.toml: rows\n"
        '[[expectation]]\ntest = "tests/test_a.py::test_b"\nkind = "skip"\nreason = "so it is"\n'
    ),
}


@pytest.mark.parametrize("rule", [r for r in design.RULES if r is not design.language_share])
def test_passes_good_text(rule, tmp_path):
    assert list(rule(make_tree(tmp_path, GOOD))) == []
