# python/torch_graft/__main__.py: the command line: python -m torch_graft doctor.
"""Commands of the package."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torch_graft", description="Attaches devices to PyTorch.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="says what was found, loaded and refused, and what to do")
    parser.parse_args(arguments)
    from torch_graft import doctor

    return doctor.examine()


if __name__ == "__main__":
    sys.exit(main())
