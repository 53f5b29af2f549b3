# python/torch_graft/cli/new_driver.py: writes a vendor's project: a driver, its package, tests and CI.
"""python -m torch_graft new-driver NAME."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import torch  # noqa: F401  (first: it attaches Graft)

from torch_graft import attaching, naming

TEMPLATE = Path(__file__).parent / "project"
_OWN = "acme"  # the name in the template
_LANGUAGES = {"c": "in_c", "c++": "in_cpp"}
_KERNELS = {"own": "own", "c": "compiled", "none": "none"}
KERNELS, LANGUAGES = tuple(_KERNELS), tuple(_LANGUAGES)


class Refused(Exception):
    """Why there is no project: what was given, what was expected, what to do."""


def flaw(name: str) -> str | None:
    """Why a vendor's device cannot have this name; None if it can."""
    ours = {entry.name for entry in entry_points(group="graft.drivers")
            if entry.value.startswith("torch_graft.")}  # fmt: skip
    if not name:
        return "it is empty"
    if name in ours | {naming.DEFAULT, "null"}:
        return "Graft itself uses it"
    # A vendor may write a second project for the device that is installed.
    return None if name == attaching.attached_name() else naming.flaw(name)


def files(kernels: str, language: str) -> dict[str, Path]:
    """The template's files of a flavour, by their paths in the project."""
    how, tongue = _KERNELS[kernels], _LANGUAGES[language]
    found: dict[str, Path] = {}
    for folder in ("every", tongue, how, f"{how}_{tongue}"):
        for path in sorted((TEMPLATE / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                parts = path.relative_to(TEMPLATE / folder).parts
                name = "/".join(part.removeprefix("dot") if part.startswith("dot.") else part
                                for part in parts)  # fmt: skip
                found[name.replace(".template.", ".")] = path
    return found


def renamed(text: str, name: str) -> str:
    """The template's name in each of its forms replaced by the vendor's."""
    title = name.replace("_", " ").capitalize()
    return (
        text.replace("torch-acme", f"torch-{name.replace('_', '-')}")
        .replace(_OWN, name)
        .replace(_OWN.capitalize(), title)
        .replace(_OWN.upper(), name.upper())
    )


def write(name: str, kernels: str, language: str, directory: Path | None) -> Path:
    """Writes the project, whose folder must be empty or not exist, and returns the folder."""
    reason = flaw(name)
    if reason is not None:
        raise Refused(
            f"'{name}' cannot be the name of a device: {reason}. Choose another, such as 'zeta'."
        )
    folder = directory or Path(f"torch-{name.replace('_', '-')}")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Refused(
                f"{folder} exists and is not an empty folder. Nothing was written: name another "
                "with --directory, or remove it."
            )
        for path, source in files(kernels, language).items():
            target = folder / renamed(path, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renamed(source.read_text(encoding="utf-8"), name), encoding="utf-8")
    except OSError as error:
        raise Refused(
            f"{folder} cannot be written: {error}. Name another with --directory."
        ) from error
    return folder


def run(name: str, kernels: str, language: str, directory: Path | None) -> int:
    """The command; its exit code."""
    try:
        folder = write(name, kernels, language, directory)
    except Refused as refusal:
        print(f"new-driver: {refusal}", file=sys.stderr)
        return 1
    print(f"""{folder} has a driver for the device "{name}", on an emulated chip. Next:

  pip install ./{folder}
  python -c "import torch; print((torch.ones(3, device='{name}') + 1).cpu())"
  pip install pytest torch-conformance graft-sdk && pytest {folder}

{folder}/README.md has the commands; each file of {folder}/driver says what to replace for the real chip.""")
    return 0
