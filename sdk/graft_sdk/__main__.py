# sdk/graft_sdk/__main__.py: python -m graft_sdk prints where the package's files are.
"""For build scripts: each option prints one folder."""

from __future__ import annotations

import argparse

import graft_sdk

FOLDERS = {
    "--root": graft_sdk.root,
    "--include-dir": graft_sdk.include_dir,
    "--cmake-dir": graft_sdk.cmake_dir,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m graft_sdk", description=__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    for option, folder in FOLDERS.items():
        summary = (folder.__doc__ or "").splitlines()[0]
        chosen.add_argument(option, action="store_const", const=folder, dest="folder", help=summary)
    print(parser.parse_args().folder())


if __name__ == "__main__":
    main()
