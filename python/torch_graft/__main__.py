# python/torch_graft/__main__.py: the command line: python -m torch_graft doctor, new-driver, run, simulate, tune.
"""Commands of the package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torch_graft", description="Attaches devices to PyTorch.")
    commands = parser.add_subparsers(dest="command", required=True)
    examine = commands.add_parser(
        "doctor", help="lists the drivers and devices found, loaded or refused, and what to do"
    )
    examine.add_argument(
        "--report", action="store_true", help="adds the facts of the machine for a bug report"
    )
    project = commands.add_parser(
        "new-driver", help="writes a vendor's project: a driver, its package, tests and CI"
    )
    project.add_argument("name", help="of the device: torch.device(NAME), torch.NAME")
    project.add_argument(
        "--kernels", choices=("own", "c", "none"), default="c",
        help="who computes: the vendor's kernels, a compiler of Graft's, or the CPU (c)",
    )  # fmt: skip
    project.add_argument("--language", choices=("c", "c++"), default="c++", help="(c++)")
    project.add_argument("--directory", type=Path, help="an empty or new folder (./torch-NAME)")
    simulate = commands.add_parser("simulate", help="runs a script as one of many simulated ranks")
    simulate.add_argument("settings", help="such as ranks=256,bandwidth=25G,latency=5us")
    simulate.add_argument("script")
    simulate.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    commands.add_parser("run", help="starts a script on several ranks, with torchrun's options")
    tune = commands.add_parser("tune", help="finds the fastest tiles for matrix products on a GPU")
    tune.add_argument("--device", type=int, default=0, help="the device's number (0)")
    tune.add_argument(
        "--candidates", type=int, default=12, help="shapes to try for each kind of product (12)"
    )
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["run"]:
        from torch_graft.process import launching

        return launching.run(arguments[1:])
    options = parser.parse_args(arguments)
    if options.command == "simulate":
        from torch_graft.process import simulation

        simulation.run(options.settings, options.script, options.arguments)
        return 0
    if options.command == "new-driver":
        from torch_graft.cli import new_driver

        return new_driver.run(options.name, options.kernels, options.language, options.directory)
    if options.command == "tune":
        from torch_graft.cli import tuning

        return tuning.tune(options.device, options.candidates)
    from torch_graft.cli import doctor

    return doctor.examine(options.report)


if __name__ == "__main__":
    sys.exit(main())
