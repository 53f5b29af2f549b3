# tools/compile_dialects.py: compiles dumped kernels with the compilers of their dialects.
"""Reads a folder that GRAFT_DUMP_KERNELS filled and compiles every program in it.

cuda-c: nvcc to PTX. opencl-c: PoCL through pyopencl where both are installed, else clang's OpenCL
C, which only parses. A dialect whose compilers are all missing is named as not compiled. Exit code
1 when a program does not compile.

--ve compiles c instead, to objects for NEC's Vector Engine by clang-19, which must be here; they
may leave undefined what drivers/veda/kernel_symbols.txt lists, and nothing else. The folder must
come from a device with such an engine's properties, as tests/drivers/limited.cpp's vector_engine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

# Programs that one run of a compiler takes: its start is most of the time of a small one.
BATCH = 32

Compile = Callable[[list[Path], Path], str]
"""Compiles programs, writing to a scratch folder; gives the compiler's log, empty when all is well."""


def run(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return (
        "" if done.returncode == 0 else done.stdout + done.stderr or f"exit code {done.returncode}"
    )


def with_nvcc(programs: list[Path], scratch: Path) -> str:
    """Each program in a namespace of its own, because all define the same types and functions."""
    source = scratch / "batch.cu"
    parts = (f'namespace g{i} {{\n#include "{path}"\n}}\n' for i, path in enumerate(programs))
    source.write_text("".join(parts))
    return run(["nvcc", "--ptx", "-o", str(scratch / "batch.ptx"), str(source)])


# Run in a process of its own, which a compiler's crash may end.
POCL = """
import sys
import pyopencl

platforms = pyopencl.get_platforms()
pocl = next(p for p in platforms if p.name == "Portable Computing Language")
context = pyopencl.Context(pocl.get_devices())
for path in sys.argv[1:]:
    pyopencl.Program(context, open(path).read()).build("-cl-std=CL1.2")
"""


def with_pocl(programs: list[Path], scratch: Path) -> str:
    return run([sys.executable, "-c", POCL, *map(str, programs)])


def has_pocl() -> bool:
    return not run([sys.executable, "-c", POCL])


def with_clang(programs: list[Path], scratch: Path) -> str:
    options = "-x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header -fsyntax-only"
    return run(["clang-14", *options.split(), "-Wno-constant-logical-operand", *map(str, programs)])


ROOT = Path(__file__).resolve().parent.parent
# Not -fno-math-errno: LLVM 19 would join sin and cos of one argument, and has no instructions for
# that on this processor.
FOR_VE = "clang-19 --target=ve-linux -O2 -ffreestanding -fopenmp-simd -w -c"


def ve_symbols() -> set[str]:
    lines = (ROOT / "drivers/veda/kernel_symbols.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def with_clang_for_ve(programs: list[Path], scratch: Path) -> str:
    log = run([*FOR_VE.split(), *(str(path.absolute()) for path in programs)], scratch)
    if log:
        return log
    objects = [str(scratch / f"{path.stem}.o") for path in programs]
    listed = subprocess.run(
        ["llvm-nm-19", "--undefined-only", "--just-symbol-name", *objects],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    symbols = {line for line in listed.stdout.splitlines() if line and not line.endswith(":")}
    unknown = sorted(symbols - ve_symbols())
    if not unknown:
        return ""
    return f"undefined, and not listed in drivers/veda/kernel_symbols.txt: {', '.join(unknown)}"


def has(program: str) -> Callable[[], bool]:
    return lambda: shutil.which(program) is not None


# By dialect: name, whether it is here, how it compiles; the first that is here is taken.
Compilers = dict[str, list[tuple[str, Callable[[], bool], Compile]]]
COMPILERS: Compilers = {
    "cuda-c": [("nvcc", has("nvcc"), with_nvcc)],
    "opencl-c": [("PoCL", has_pocl, with_pocl), ("clang-14", has("clang-14"), with_clang)],
}
VE_COMPILERS: Compilers = {"c": [("clang-19 for VE", lambda: True, with_clang_for_ve)]}


def failures(compile_: Compile, programs: list[Path]) -> list[tuple[Path, str]]:
    """The programs of a batch that do not compile, each with its log."""
    with tempfile.TemporaryDirectory() as name:
        log = compile_(programs, Path(name))
    if not log:
        return []
    if len(programs) == 1:
        return [(programs[0], log)]
    half = len(programs) // 2
    return failures(compile_, programs[:half]) + failures(compile_, programs[half:])


def check(dialect: str, compilers: Compilers, programs: list[Path], jobs: int) -> bool:
    """Compiles a dialect's programs and prints what became of them."""
    present = [(name, compile_) for name, here, compile_ in compilers[dialect] if here()]
    if not present:
        names = " or ".join(name for name, _, _ in compilers[dialect])
        print(f"{dialect}: {len(programs)} programs not compiled: no {names} on this machine")
        return True
    name, compile_ = present[0]
    batches = [programs[i : i + BATCH] for i in range(0, len(programs), BATCH)]
    bad: list[tuple[Path, str]] = []
    with (
        ThreadPoolExecutor(jobs) as pool,
        tqdm(total=len(programs), desc=f"{dialect} by {name}") as bar,
    ):
        results = pool.map(lambda batch: failures(compile_, batch), batches)
        for batch, found_bad in zip(batches, results, strict=True):
            bad += found_bad
            bar.update(len(batch))
    for path, log in bad:
        print(f"{path}\n{log}", file=sys.stderr)
    print(f"{dialect}: {len(programs) - len(bad)} of {len(programs)} programs compile with {name}")
    return not bad


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="what GRAFT_DUMP_KERNELS named")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at a time")
    parser.add_argument("--ve", action="store_true", help="c, for NEC's Vector Engine")
    given = parser.parse_args()
    missing = [name for name in ("clang-19", "llvm-nm-19") if shutil.which(name) is None]
    if given.ve and missing:
        parser.error(f"no {' and no '.join(missing)} on this machine: run tools/setup")
    compilers = VE_COMPILERS if given.ve else COMPILERS
    good, seen = True, False
    for dialect in compilers:
        programs = sorted((given.folder / dialect).glob("*.c"))
        if programs:
            seen = True
            good = check(dialect, compilers, programs, given.jobs) and good
    if not seen:
        parser.error(
            f"{given.folder} has no programs: run something with GRAFT_DUMP_KERNELS={given.folder}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
