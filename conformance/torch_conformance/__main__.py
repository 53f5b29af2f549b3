# conformance/torch_conformance/__main__.py: the command line: torch-conformance, python -m torch_conformance.
"""Sub-commands: run (what happens without one), fuzz, report, beside, site, lint."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from pathlib import Path

from torch_conformance import SetupError
from torch_conformance.cells import cases

# Sub-commands that are a module's main().
MODULES = {
    "fuzz": "torch_conformance.fuzz.command", "beside": "torch_conformance.report.beside",
    "site": "torch_conformance.report.site", "lint": "torch_conformance.lint.command",
}  # fmt: skip
COMMANDS = ("run", "report", *MODULES)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no shard; expected k/n with 1 <= k <= n, as 2/8"
        )
    return int(part), int(parts)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 upwards")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds above 0")
    return value


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="torch-conformance",
        description="Puts a torch device through PyTorch's op_db, module_db and optim_db and "
        "compares it with the CPU. Other commands: report RESULTS, beside RESULTS OTHER, "
        "site FOLDER, lint TREE.",
    )
    add = p.add_argument
    add("--device", default="cpu", help="the device under test: cpu, cuda, npu, ... (cpu)")
    add("--plugin", metavar="MODULE", help="imported in every worker; registers the device, or "
        "offers on_device(cell), a context manager around its work")  # fmt: skip
    add("--suites", type=_words, help=f"of {', '.join(cases.SUITES)} (all)")
    add("--ops", type=_words, metavar="PATTERNS", help="entries, as 'add,nn.functional.*' (all)")
    add("--dtypes", type=_words, help="as float32,bfloat16 (all)")
    add("--aspects", type=_words, help=f"of {', '.join(cases.ASPECTS['op'])}, ... (all)")
    add("--shard", type=_shard, default=(1, 1), metavar="K/N", help="the K-th of N parts")
    add("--workers", type=_positive, default=os.cpu_count() or 1, help="processes (one a core)")
    add("--threads", type=_positive, default=1, help="threads of each worker (1)")
    add("--time-limit", type=_seconds, default=300.0, metavar="S", help="of a cell: a hang (300)")
    add("--total-limit", type=_seconds, metavar="S", help="of the whole run; --resume goes on")
    add("--fallback", choices=("allow", "warn", "forbid"), default="allow",
        help="operators that the device leaves to the CPU, where it can tell (allow)")  # fmt: skip
    add("--expectations", action="append", default=[], metavar="FILE",
        help="TOML with the device's own skips and expected failures, each with a reason")  # fmt: skip
    add("--prove-native", action="store_true",
        help="runs passing cells again with launches dropped: they must come out wrong")  # fmt: skip
    add("--out", metavar="FOLDER", help="for the files (conformance-<device>)")
    add("--label", help="how the report calls the device")
    add("--resume", action="store_true", help="goes on with an interrupted run")
    add("--restart", action="store_true", help="throws an unfinished run away")
    add("--start", choices=("auto", "fork", "spawn"), default="auto", help="how workers begin")
    add("--no-page", dest="page", action="store_false", help="writes no report.html")
    add("--list", action="store_true", help="prints the cells and runs nothing")
    return p


def _report(arguments: list[str]) -> int:
    p = argparse.ArgumentParser(prog="torch-conformance report", description="Writes the page.")
    p.add_argument("results", type=Path, help="results.json, or a run's folder")
    p.add_argument("--out", type=Path, help="the page (report.html beside the results)")
    options = p.parse_args(arguments)
    from torch_conformance.report import page, schema

    found = schema.read(options.results)
    folder = options.results if options.results.is_dir() else options.results.parent
    target = options.out or folder / "report.html"
    page.write_page(found, target)
    print(target)
    return 0


def _dispatch(arguments: list[str]) -> int:
    command = arguments[0] if arguments and arguments[0] in COMMANDS else "run"
    rest = arguments[1:] if arguments and arguments[0] in COMMANDS else arguments
    if command == "report":
        return _report(rest)
    if command in MODULES:
        return int(importlib.import_module(MODULES[command]).main(rest))
    options = parser().parse_args(rest)
    from torch_conformance.run.command import run

    return run(options)


def main(arguments: list[str] | None = None) -> int:
    gc.disable()  # while torch is imported, collections find nothing and cost half a second
    os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")  # looking for them takes as long
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # asking for CUDA must not open it
    try:
        return _dispatch(sys.argv[1:] if arguments is None else arguments)
    except SetupError as error:
        print(f"torch-conformance: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
