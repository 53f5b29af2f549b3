"""tests/vendor/test_dialect_c.py: kernels of the dialect c are what docs/drivers/dialect-c.md says.

Each kernel that a program of all kinds of operators asks for is compiled by the page's command, by
GCC and by clang, and held against the page's lists of extensions and functions.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox import interpret, program

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/drivers/dialect-c.md").read_text()
# The system's linker and C runtime add these to a shared library.
RUNTIME = {"__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable",
           "_ITM_registerTMCloneTable", "memcpy", "memset",
           "sincos", "sincosf", "__stack_chk_fail"}  # fmt: skip
pytestmark = [pytest.mark.host_only, pytest.mark.one_mode, pytest.mark.seldom]


class Argument(ctypes.Union):
    """As the page has it."""

    _fields_ = (("address", ctypes.c_void_p), ("bits", ctypes.c_uint64))


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[float]]]:
    folder = tmp_path_factory.mktemp("dialect")
    code = program("tests/vendor/dialect_c_kernels.py")
    ran = interpret(code, timeout=300, GRAFT_DUMP_KERNELS=str(folder), GRAFT_HOST_LIBRARY="0")
    return folder / "c", ran.value()


def functions() -> set[str]:
    """Those of the page's list, in both precisions."""
    listed = re.search(r"<!-- functions -->(.*?)<!-- end -->", PAGE, re.S)
    assert listed is not None
    names = set(re.findall(r"`(\w+)`", listed[1]))
    assert len(names) > 15
    return names | {name + "f" for name in names} | {"lgamma_r"}


def command(compiler: str, source: Path, library: Path) -> list[str]:
    """The page's, of that compiler."""
    line = re.search(r"^cc (.*)$", PAGE, re.M)
    assert line is not None
    words = line[1].replace("kernel.c", str(source)).replace("kernel.so", str(library)).split()
    return [compiler, *words, "-Werror=implicit-function-declaration"]


def sources(folder: Path) -> Iterator[Path]:
    found = sorted(folder.glob("*.c"))
    assert len(found) > 80
    yield from found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("compiler", ["gcc", "clang-14"])
def test_the_pages_command_compiles_each_kernel(dumped, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.fail(f"{compiler} is missing: tools/setup test installs it")

    def compiled(source: Path) -> str:
        library = tmp_path / source.with_suffix(".so").name
        done = subprocess.run(command(compiler, source, library), capture_output=True, text=True)
        if done.returncode != 0:
            return f"{source.name}: {done.stderr[:500]}"
        listed = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
        rows = [row.split() for row in listed.stdout.splitlines()]
        needed = {row[-1].split("@")[0] for row in rows if row[-2] in "Uw"}
        defined = [row[-1] for row in rows if row[-2] in "TDBR" and not row[-1].startswith("_")]
        strange = needed - functions() - RUNTIME
        wrong = f"{source.name} needs {strange}" if strange else ""
        return wrong if defined == [source.stem] else f"{source.name} defines {defined}"

    with ThreadPoolExecutor(2) as pool:
        wrong = [one for one in pool.map(compiled, sources(dumped[0])) if one]
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.every_run
def test_the_page_lists_the_functions_of_the_ir():
    table = (ROOT / "src/codegen/ir/ir.h").read_text()
    names = re.findall(r"MATH\((\w+), \d\)", table)
    defined = {"lgamma", "digamma", "min", "max"}
    library = set(names[: names.index("zeta")]) - defined
    renamed = {"abs": "fabs", "round": "rint"}
    assert {renamed.get(name, name) for name in library} <= functions()


def test_kernels_use_the_listed_extensions_alone(dumped):
    text = "\n".join(source.read_text() for source in sources(dumped[0]))
    builtins = set(re.findall(r"__builtin_(\w+)", text))
    hardware = {name for name in builtins if name.startswith("ia32_")}
    assert builtins - hardware - {"memcpy"} <= functions()
    pragmas = {" ".join(words) for words in re.findall(r"#pragma (\w+) (\w+)", text)}
    assert pragmas <= {"omp simd", "GCC optimize"}
    attributes = set(re.findall(r"__attribute__\(\((\w+)", text))
    assert attributes <= {"always_inline", "vector_size"}
    assert "#include" not in text
    reserved = {f"__{name}" for name in re.findall(r"\b__(\w+)", text)}
    reserved -= {f"__builtin_{name}" for name in builtins}
    known = {"__attribute__", "__int128", "__ve__", "__clang__"}
    strange = {name for name in reserved - known if name not in PAGE}
    strange = {
        name for name in strange if not re.fullmatch(r"__(U?INT\d+_TYPE|F\w+|AVX\w+)__", name)
    }
    assert not strange


def test_a_kernel_is_called_as_the_page_says(dumped, tmp_path):
    folder, (a, b, expected) = dumped
    [source] = folder.glob("mul_float32_0_float32d_float32d_float32d.c")
    library = tmp_path / "kernel.so"
    subprocess.run(
        ["gcc", "-O0", "-std=gnu11", "-fPIC", "-shared", source, "-o", library], check=True
    )
    kernel = ctypes.CDLL(str(library))[source.stem]
    numbers = [(ctypes.c_float * 1000)(*values) for values in ([0] * 1000, a, b)]
    arguments = (Argument * 5)(*[Argument(address=ctypes.addressof(one)) for one in numbers])
    # Elements in all, and of a work-item.
    arguments[3].bits, arguments[4].bits = 1000, 300
    for begin, end in ((2, 4), (0, 1), (1, 2)):
        kernel(arguments, ctypes.c_uint64(begin), ctypes.c_uint64(end))
    assert list(numbers[0]) == expected
