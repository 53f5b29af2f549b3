#!/usr/bin/env python3
# tools/driver_page.py: performs docs/drivers/afternoon.md, and times it in a clean environment.
"""Usage: tools/driver_page.py [--torch RELEASE]

Builds the wheels torch-graft, graft-sdk and torch-conformance into build/page/dist, installs them with torch
into a fresh environment, and there performs the page's steps and writes, builds, installs and checks a project
of each flavour, with pip's build isolation. Prints the seconds of each, and writes those of the page's steps
into its table."""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from torch_graft.cli import new_driver

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/drivers/afternoon.md"
FOLDER = ROOT / "build/page"
SECTION = re.compile(r"^## (\d)\. (.*?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(bash|py|cpp|diff)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(<!-- times -->\n).*?(<!-- /times -->)", re.DOTALL)
SHARE = 400  # a flavour runs this part of the conformance suite

Run = Callable[..., str]


class Block(NamedTuple):
    section: str
    kind: str  # the language
    text: str


def blocks() -> list[Block]:
    """What the page tells its reader to do, in order."""
    sections = SECTION.findall(PAGE.read_text())
    return [Block(f"{number}: {title}", *found)
            for number, title, body in sections for found in BLOCK.findall(body)]  # fmt: skip


def perform(run: Run, folder: Path, block: Block) -> str:
    """Does it in the folder, where run runs commands; returns what was printed."""
    if block.kind == "bash":
        return run("bash", "-euo", "pipefail", "-c", block.text)
    if block.kind == "py":
        return run("python", "-c", block.text)
    if block.kind == "diff":
        (folder / "change.diff").write_text(block.text)
        return run("patch", "-p1", "-i", "change.diff")
    named = re.match(r"// (\S+): ", block.text)
    assert named, block.text
    path = folder / named[1]
    # The page's line names the file in its project, whose folder is the page's last one.
    path.write_text(block.text.replace(f"// {named[1]}", f"// driver/{path.name}"))
    return ""


def wheels(python: Path) -> Path:
    """Builds the three, the compiled one in the folder where the environment's was built."""
    dist = FOLDER / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    pip: list[str | Path] = [python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", dist]
    for source in (ROOT, ROOT / "sdk", ROOT / "conformance"):
        print(f"building the wheel of {source.name}", flush=True)
        isolation = [] if source.name == "conformance" else ["--no-build-isolation"]
        subprocess.run([*pip, *isolation, source], check=True)
    return dist


def environment(dist: Path, torch: str) -> dict[str, str]:
    """The variables of a shell in a fresh environment that has torch and the wheels."""
    inside = FOLDER / "environment"
    shutil.rmtree(inside, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", inside], check=True)
    needed = [f"torch=={torch}", "torch-graft", "graft-sdk", "torch-conformance", "pytest"]
    print("installing " + " ".join(needed), flush=True)
    found = [str(dist), os.environ.get("PIP_FIND_LINKS", "")]
    links = {"PIP_FIND_LINKS": " ".join(found).strip(), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip: list[str | Path] = [inside / "bin/python", "-m", "pip", "install", "-q", *needed]
    subprocess.run(pip, check=True, env=os.environ | links)
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("GRAFT_", "PYTHON", "CC", "CXX"))
    }
    return kept | links | {
        "PATH": f"{inside / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(FOLDER / "cache"),
        "PIP_QUIET": "1",
    }  # fmt: skip


def runner(folder: Path, variables: dict[str, str]) -> Run:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def run(*command: str, **more: str) -> str:
        done = subprocess.run(
            command, cwd=folder, env=variables | more, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    return run


def time_page(variables: dict[str, str]) -> dict[str, float]:
    folder, seconds = FOLDER / "desk", dict[str, float]()
    run = runner(folder, variables)
    for block in blocks():
        began = time.monotonic()
        perform(run, folder, block)
        seconds[block.section] = seconds.get(block.section, 0) + time.monotonic() - began
    return seconds


def time_flavours(variables: dict[str, str]) -> None:
    for shard, (kernels, language) in enumerate(
        itertools.product(new_driver.KERNELS, new_driver.LANGUAGES), 1
    ):
        run = runner(FOLDER / "flavour", variables)
        began = time.monotonic()
        flavour = ("--kernels", kernels, "--language", language)
        run("python", "-m", "torch_graft", "new-driver", "zeta", *flavour)
        run("pip", "install", "--force-reinstall", "--no-deps", "./torch-zeta")
        installed = time.monotonic()
        report = run(
            "python", "-m", "pytest", "-q", "torch-zeta", CONFORMANCE_SHARD=f"{shard}/{SHARE}"
        )
        tested = time.monotonic()
        print(f"{kernels:4} in {language:3}  installed after {installed - began:3.0f} s, checker and shard "
              f"{tested - installed:3.0f} s  {report.splitlines()[-1]}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--torch", default=version("torch"), help="the release to install")
    given = parser.parse_args()
    variables = environment(wheels(Path(sys.executable)), given.torch)
    seconds = time_page(variables)
    for section, one in seconds.items():
        print(f"{one:4.0f} s  {section}")
    rows = "".join(f"| {section} | {one:.0f} |\n" for section, one in seconds.items())
    table = f"Measured on {datetime.date.today()}.\n\n| step | seconds |\n|---|---|\n{rows}"
    PAGE.write_text(TABLE.sub(lambda found: found[1] + table + found[2], PAGE.read_text()))
    time_flavours(variables)


if __name__ == "__main__":
    main()
