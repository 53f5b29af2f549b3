"""A copy of a tree with every fault in its sources, built with an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).resolve().parent
HEADER = "chosen.h"
INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
PLACE = re.compile(r"\bPLANTED\b")


@dataclass(frozen=True)
class Fault:
    """A row of faults.toml."""

    number: int
    what: str
    file: str
    right: str
    wrong: str
    program: str = ""
    filter: str = ""
    pytest: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """What is run: the same for faults that share a run without a fault."""
        return self.pytest or (self.program, self.filter)


def read_faults(listing: Path = HERE / "faults.toml") -> list[Fault]:
    rows: list[dict[str, Any]] = tomllib.loads(listing.read_text())["fault"]
    return [Fault(**row | {"pytest": tuple(row.get("pytest", ()))}) for row in rows]


def planted(text: str, faults: Iterable[Fault]) -> str:
    """A source with a switch for each of its faults; GRAFT_PLANTED chooses one when it runs."""
    for fault in faults:
        count = text.count(fault.right)
        if count != 1:
            raise SystemExit(
                f"fault {fault.number}: expected its text once in src/{fault.file}, found it {count} "
                f"times. Give `right` in tests/planted/faults.toml the text of today."
            )
        switched = PLACE.sub(f"graft_planted({fault.number})", fault.wrong)
        text = text.replace(fault.right, switched)
    end = list(INCLUDE.finditer(text))[-1].end()
    return f'{text[:end]}\n#include "{HEADER}"\n{text[end:]}'


class EditedTree:
    """The copy in build/planted of a tree; what is committed there is what is edited."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.root = tree / "build" / "planted"
        self.python = self.root / ".venv/bin/python"

    def environment(self, **more: str) -> dict[str, str]:
        """The variables of a build or a test; nothing chooses a fault, a share or a driver but more."""
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GRAFT_", "GTEST_", "PYTHONPATH")) or name == "GRAFT_CC"
        }
        # As the Makefile's: ccache then finds what the tree's own builds compiled.
        return {"CC": "cc", "CXX": "g++", "CMAKE_BUILD_PARALLEL_LEVEL": "2"} | clean | {
            "PATH": f"{self.root}/.venv/bin:{os.environ['PATH']}",
            "CCACHE_BASEDIR": str(self.root), "CCACHE_NOHASHDIR": "1",
            "CCACHE_SLOPPINESS": "pch_defines,time_macros",
            "PYTHONDONTWRITEBYTECODE": "1", "GRAFT_CACHE_DIR": str(self.root / "build/cache"),
        } | more  # fmt: skip

    def make(self, faults: list[Fault], programs: Iterable[str]) -> None:
        """Copies, edits and builds; at most an hour from nothing, minutes with ccache."""
        self.copy()
        self.edit(faults)
        self.link_environment()
        run = self.build_command
        run("cmake", "--preset", "release", "-DGRAFT_PACK_LEVELS=native", "-Wno-dev",
            "--log-level=WARNING")  # fmt: skip
        run("cmake", "--build", "--preset", "release", "--target", *programs)
        pip = [str(self.python), "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "uninstall", "--quiet", "--yes", "torch-graft")
        run(*pip, "install", "--quiet", "--no-build-isolation", "--no-deps",
            "--config-settings=cmake.define.GRAFT_PACK_LEVELS=native", ".")  # fmt: skip

    def build_command(self, *command: str) -> None:
        subprocess.run(command, cwd=self.root, env=self.environment(), check=True)

    def copy(self) -> None:
        def git(*command: str) -> None:
            subprocess.run(["git", "-C", str(self.root), *command], check=True)

        self.root.mkdir(parents=True, exist_ok=True)
        if not (self.root / ".git").exists():
            git("init", "--quiet")
        git("fetch", "--quiet", "--depth=1", self.tree.as_uri(), "HEAD")
        git("checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
        git("clean", "--quiet", "--force", "-d")

    def edit(self, faults: list[Fault]) -> None:
        shutil.copyfile(HERE / HEADER, self.root / "src" / HEADER)
        for name in dict.fromkeys(fault.file for fault in faults):
            file = self.root / "src" / name
            file.write_text(planted(file.read_text(), [f for f in faults if f.file == name]))

    def link_environment(self) -> None:
        """An environment of hard links. pip takes a linked file away before it writes that anew."""
        shutil.rmtree(self.root / ".venv", ignore_errors=True)
        shutil.copytree(
            self.tree / ".venv", self.root / ".venv", symlinks=True, copy_function=os.link
        )
