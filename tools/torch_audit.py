# tools/torch_audit.py: compares what this tree relies on with what a torch has; see tools/torch-audit.
from __future__ import annotations

import difflib
import functools
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch_uses as uses
from torch_headers import Headers

_PROBE = Path(__file__).with_name("torch_probe.py")
_FUNC = re.compile(r"^- func: ((\S+?)\(.*)$", re.MULTILINE)
_AUTOGEN = re.compile(r"^  autogen: (.*)$", re.MULTILINE)
_NEAR = 0.75
_QUIET = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # torch alone, without what attaches to it


class Unusable(Exception):
    """What was given is no torch."""


class Finding(NamedTuple):
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


class Torch:
    """An installed torch, or a folder of the package of one."""

    def __init__(self, folder: Path, python: Path | None) -> None:
        if not (folder / "include/ATen").is_dir():
            raise Unusable(f"{folder} is no folder of the package torch: it has no include/ATen")
        self.folder = folder
        self.python = python
        self.headers = Headers(folder / "include")
        text = (folder / "version.py").read_text() if (folder / "version.py").is_file() else ""
        found = re.search(r"^__version__ = ['\"]([^'\"]+)", text, re.MULTILINE)
        if found is None:
            raise Unusable(f"{folder}/version.py does not say the version of torch")
        self.version = found[1].split("+")[0]

    @functools.cached_property
    def names(self) -> dict[str, Any] | None:
        """The answer of torch_probe.py; None for headers without a package."""
        if self.python is None:
            return None
        environment = os.environ | _QUIET
        if not Path(self.folder).is_relative_to(_prefix(self.python)):
            environment["PYTHONPATH"] = str(self.folder.parent)
        request = {
            "tables": [str(table) for table in uses.TABLES],
            "torchgen": [one.name for one in uses.torchgen_names()],
            "schemas": sorted({one.name for one in uses.custom_operators()}),
            "more": [sysconfig.get_paths()["purelib"]],
        }
        done = subprocess.run([self.python, _PROBE], input=json.dumps(request), text=True,
                              capture_output=True, env=environment)  # fmt: skip
        if done.returncode:
            raise Unusable(f"{self.python} cannot import torch:\n{done.stderr.strip()[-2000:]}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    @functools.cached_property
    def schemas(self) -> dict[str, str] | None:
        """By operator of aten its schema; None where the list of torchgen does not lie beside."""
        path = self.folder.parent / "torchgen/packaged/ATen/native/native_functions.yaml"
        if not path.is_file():
            return None
        text = path.read_text()
        found = {name: schema for schema, name in _FUNC.findall(text)}
        for line in _AUTOGEN.findall(text):
            found |= {name.strip(): "generated" for name in line.split(",")}
        return found

    @functools.cached_property
    def stubs(self) -> dict[str, str]:
        """By name every stub that a header declares, and its form."""
        folder = self.headers.folder
        paths = sorted(p for p in (folder / "ATen/native").rglob("*.h"))
        declared = [one for path in paths if "DECLARE_DISPATCH" in path.read_text(errors="replace")
                    for one in self.headers.declared(str(path.relative_to(folder)))]  # fmt: skip
        return {one.name: one.form for one in declared if one.form.startswith("DispatchStub ")}

    @functools.cached_property
    def exported(self) -> set[str] | None:
        """The names of variables of at::native in its library; None where there is none."""
        library = self.folder / "lib/libtorch_cpu.so"
        if not library.is_file():
            return None
        command = ["nm", "-D", "-C", "--defined-only", str(library)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return set(re.findall(r"^[0-9a-f]+ [BDVR] (at::native::\w+)$", text, re.MULTILINE))

    def forms(self, use: uses.Use) -> set[str]:
        """How the headers that a use includes declare its name."""
        return {one.form for header in self.headers.reached(list(use.headers))
                for one in self.headers.declared(header) if one.name == use.name}  # fmt: skip

    def near(self, use: uses.Use) -> str:
        names = {one.name: header for header in self.headers.reached(list(use.headers))
                 for one in self.headers.declared(header)}  # fmt: skip
        return _close(use.name, {name: f"{name} in {header}" for name, header in names.items()})


def _close(name: str, known: Mapping[str, str]) -> str:
    """Which of the known names are near, as their texts say it."""
    near = difflib.get_close_matches(name, known, n=2, cutoff=_NEAR)
    return f"; it has {', '.join(known[one] for one in near)}" if near else ""


def _prefix(python: Path) -> Path:
    return Path(os.path.abspath(python)).parent.parent


def given(path: Path) -> Torch:
    """The torch of a Python, of an environment, or of a folder of the package."""
    for python in (path, path / "bin/python"):
        if python.is_file():
            command = [
                str(python),
                "-c",
                "import importlib.util as u; print(u.find_spec('torch').origin)",
            ]
            environment = os.environ | _QUIET
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            origin = Path(done.stdout.strip())
            if done.returncode or not origin.is_file():
                raise Unusable(
                    f"{python} has no torch: install it there, or name a Python that has it"
                )
            return Torch(origin.parent, python)
    whole = (path / "__init__.py").is_file()
    return Torch(path.resolve(), Path(sys.executable) if whole else None)


def audit(torch: Torch, before: Torch | None = None) -> Iterator[Finding]:
    """What torch lacks, or has otherwise than the torch before, of what the tree uses there."""
    yield from _seam(torch, before)
    yield from _stubs(torch, before)
    yield from _operators(torch, before)
    yield from _python(torch, before)


def _seam(torch: Torch, before: Torch | None) -> Iterator[Finding]:
    own = uses.minor_header(torch.version)
    builds: list[tuple[str, Torch | None]] = [
        (torch.version, None)
    ]  # what a build for this torch takes
    if before is not None:
        builds.insert(0, (before.version, before))  # what has worked
    seen: set[tuple[str, str]] = set()
    for one in (one for version, _ in builds for one in uses.included(version)):
        if not torch.headers.has(one.name) and (one.name, one.where) not in seen:
            yield Finding(one.where, f"torch {torch.version} has no header {one.name}")
        seen.add((one.name, one.where))
    for version, reference in builds:
        for one in uses.native(version):
            if (one.name, one.where) in seen:
                continue
            seen.add((one.name, one.where))
            note = ""
            if own and "/minor/" in one.where and own.name not in one.where:
                note = f" (a build for {torch.version} takes {own.relative_to(uses.ROOT)} instead)"
            yield from _declared(torch, reference, one, note)


def _declared(torch: Torch, before: Torch | None, use: uses.Use, note: str) -> Iterator[Finding]:
    now = torch.forms(use)
    if not now:
        what = f"torch {torch.version} does not declare {use.name}{torch.near(use)}{note}"
        yield Finding(use.where, what)
    elif before is not None and (gone := before.forms(use) - now):
        yield Finding(use.where, f"{use.name} changed: torch {before.version} has "
                      f"{_text(gone)}, torch {torch.version} has {_text(now)}{note}")  # fmt: skip


def _text(forms: set[str]) -> str:
    return " and ".join(f'"{one}"' for one in sorted(forms))


def _stubs(torch: Torch, before: Torch | None) -> Iterator[Finding]:
    for one in uses.table_stubs():
        now = torch.stubs.get(one.name)
        if now is None:
            near = _close(one.name, {name: name for name in torch.stubs})
            yield Finding(one.where, f"torch {torch.version} declares no stub {one.name}{near}")
        elif before is not None and before.stubs.get(one.name, now) != now:
            yield Finding(one.where, f"{one.name} changed: torch {before.version} has "
                          f'"{before.stubs[one.name]}", torch {torch.version} has "{now}"')  # fmt: skip
    for one in uses.undeclared_stubs():
        if torch.exported is not None and one.name not in torch.exported:
            yield Finding(one.where, f"torch {torch.version} exports no {one.name}")
    headers = [str(p) for p in (torch.headers.folder / "ATen/native").rglob("*.h")]
    for one in uses.skipped_headers():
        if not any(one.name in header for header in headers):
            yield Finding(
                one.where, f"torch {torch.version} has no header {one.name} in ATen/native"
            )


def _operators(torch: Torch, before: Torch | None) -> Iterator[Finding]:
    if torch.schemas is not None:
        plain, flat = uses.operators(torch.version)
        known = before.schemas if before is not None else None
        yield from _schemas(torch, plain, torch.schemas, known or {})
        yield from _schemas(torch, flat, _flat(torch.schemas), _flat(known or {}))
    if torch.names is not None:
        now = torch.names["schemas"]
        known = before.names["schemas"] if before is not None and before.names else {}
        present = {name: schema for name, schema in now.items() if schema}
        yield from _schemas(torch, uses.custom_operators(), present, known)


def _flat(schemas: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): schema for name, schema in schemas.items()}


def _schemas(
    torch: Torch, used: list[uses.Use], now: dict[str, str], before: dict[str, Any]
) -> Iterator[Finding]:
    for one in _once(used):
        if one.name not in now:
            text = _close(one.name, {name: name for name in now})
            yield Finding(one.where, f"torch {torch.version} has no operator {one.name}{text}")
        elif (before.get(one.name) or now[one.name]) != now[one.name]:
            yield Finding(one.where, f"operator {one.name} changed: it was {before[one.name]}, "
                          f"torch {torch.version} has {now[one.name]}")  # fmt: skip


def _once(used: list[uses.Use]) -> list[uses.Use]:
    return list({one.name: one for one in reversed(used)}.values())[::-1]


def _python(torch: Torch, before: Torch | None) -> Iterator[Finding]:
    if torch.names is None:
        return
    known = before.names if before is not None and before.names else torch.names
    version = known["version"].split("+")[0]
    for table in uses.TABLES:
        file = str(table.relative_to(uses.ROOT))
        now, was = (names["rows"][str(table)] for names in (torch.names, known))
        yield from _rows(torch, now, was, version, uses.table_lines(table), file)
        yield from _members(torch, torch.names["members"][str(table)], f"{file} (MEMBERS)")
    where = {one.name: one.where for one in uses.torchgen_names()}
    yield from _rows(torch, torch.names["torchgen"], known["torchgen"], version, where, "")


def _rows(
    torch: Torch, found: dict[str, Any], known: dict[str, Any], version: str,
    where: dict[str, str], file: str,
) -> Iterator[Finding]:  # fmt: skip
    """version: of the torch that `known` tells of. where: the place of a row, else `file`."""
    for name, now in found.items():
        place = where.get(name, file)
        was = known.get(name, {}).get("form")
        if "missing" in now:
            lacks = "" if "was not looked at" in now["missing"] else "has no "
            yield Finding(place, f"torch {torch.version} {lacks}{now['missing']}, for {name}")
        elif was and now["form"] and was != now["form"]:
            yield Finding(place, f"{name} changed: torch {version} has "
                          f"{was}, torch {torch.version} has {now['form']}")  # fmt: skip


def _members(torch: Torch, found: dict[str, Any], place: str) -> Iterator[Finding]:
    for owner, now in found.items():
        if "missing" in now:
            yield Finding(place, f"torch {torch.version} has no {now['missing']}")
        for name, near in now.get("absent", {}).items():
            yield Finding(place, f"torch {torch.version} has no {name} of {owner}{near}")


def unexamined(torch: Torch) -> list[str]:
    """What the findings say nothing about."""
    left = []
    if torch.names is None:
        left.append("names in Python: the folder is no whole package, name a Python with --python")
    if torch.schemas is None:
        left.append("operators: torchgen does not lie beside the package")
    if torch.exported is None:
        left.append("stubs without a declaration: the package has no lib/libtorch_cpu.so")
    return left
