# tools/deployed_system.py: runs a deployed model in a Debian system that has neither Python nor torch.
"""Usage: python tools/deployed_system.py [SUITE] [--mirror URL]. Makes the smallest Debian by debootstrap
(bookworm unless named), without a C compiler, adds the executable part of the installed package, a model and its input, runs graft-infer there, compares its result with the
model's in this process, and writes the part's size into docs/use/deploy/programs.md. build/systems/SUITE-bare.tar keeps the
system as it was made; the copy that is run is thrown away. Needs root, debootstrap and network."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/use/deploy/programs.md"
SYSTEMS = ROOT / "build/systems"
PART = ("bin/graft-infer", "lib/libgraft.so", "drivers/graft_host.so", "drivers/graft_pack_v*.so")
PROGRAM = re.compile(r"^(python[\d.]*|[cg]?cc|gcc-\d+|zig)$")
LIBRARY = re.compile(r"^lib(python|torch|c10).*\.so[\d.]*$")
SIZES = re.compile(r"(?<=<!-- sizes -->\n).*?(?=<!-- end of sizes -->)", re.DOTALL)


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        text = (done.stdout + done.stderr).strip()[-2000:]
        raise SystemExit(f"{' '.join(words)}: exit status {done.returncode}\n{text}")
    return done.stdout


def make_system(suite: str, mirror: str | None, place: Path) -> None:
    kept = SYSTEMS / f"{suite}-bare.tar"
    if not kept.exists():
        made = place.with_name(f"{place.name}.made")
        shutil.rmtree(made, ignore_errors=True)
        words = ["--variant=minbase", suite, made]
        run("debootstrap", *words, *([mirror] if mirror else []))
        run("tar", "-C", made, "-cf", f"{kept}.part", ".")
        Path(f"{kept}.part").rename(kept)
        shutil.rmtree(made)
    place.mkdir()
    run("tar", "-C", place, "-xpf", kept)


@contextmanager
def system(suite: str, mirror: str | None) -> Iterator[Path]:
    """A fresh copy of the system, with /proc."""
    place = SYSTEMS / f"{suite}-deployed"
    SYSTEMS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    make_system(suite, mirror, place)
    run("mount", "-t", "proc", "proc", place / "proc")
    try:
        yield place
    finally:
        run("umount", place / "proc")
        shutil.rmtree(place)


def foreign_files(place: Path) -> list[str]:
    """What would let Python, torch or a compiler run there."""
    found = []
    for folder, folders, names in os.walk(place):
        if Path(folder) == place:
            folders.remove("proc")
        for name in names:
            program = Path(folder).name in ("bin", "sbin") and PROGRAM.match(name)
            if program or LIBRARY.match(name):
                found.append(str(Path(folder, name).relative_to(place)))
    return found


def copy_part(package: Path, to: Path) -> dict[str, int]:
    """Copies the executable part. Returns the bytes of each file, by its path in the package."""
    sizes = {}
    for pattern in PART:
        found = sorted(package.glob(pattern))
        if not found:
            raise SystemExit(f"{package} has no {pattern}: install this tree first")
        for file in found:
            name = str(file.relative_to(package))
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to / name)
            sizes[name] = file.stat().st_size
    return sizes


def table(sizes: dict[str, int], suite: str) -> str:
    rows = [f"| `{name}` | {size / 1e6:.1f} |" for name, size in sizes.items()]
    total = f"| together | {sum(sizes.values()) / 1e6:.1f} |"
    ran = f"The part ran in Debian's {suite} as debootstrap makes it: no Python, no torch, no compiler (`tools/deployed_system.py {suite}`)."
    return "\n".join(
        ["", "| file of the package | MB |", "|---|---|", *rows, total, "", ran, "", ""]
    )


def publish(page: str, sizes: dict[str, int], suite: str) -> str:
    text, count = SIZES.subn(lambda _: table(sizes, suite), page)
    if count != 1:
        raise SystemExit(f"{PAGE} has no place for sizes: write the two comments again")
    return text


def deploy_model(folder: Path) -> None:
    """A small convolutional network, its input, and what it gives in this process."""
    import numpy
    import torch
    from torch import nn

    import torch_graft

    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    head = [nn.Flatten(), nn.Linear(16 * 16 * 16, 10), nn.Softmax(-1)]
    device = torch_graft.attaching.attached_name()
    model = nn.Sequential(*layers, *head).eval().to(device)
    x = torch.randn(4, 3, 32, 32)
    numpy.save(folder / "x.npy", x.numpy())
    with torch.no_grad():
        numpy.save(folder / "wanted.npy", model(x.to(device)).cpu().numpy())
    torch_graft.deploy(model, (x.to(device),), folder / "model.graft")


def compare(folder: Path) -> float:
    """The largest difference between the result there and here. More than rounding ends the run."""
    import numpy

    found = numpy.load(folder / "out_result.npy")
    wanted = numpy.load(folder / "wanted.npy")
    if not numpy.allclose(found, wanted, rtol=1e-5, atol=1e-6):
        raise SystemExit(f"the result differs: {found}\nexpected {wanted}")
    return float(abs(found - wanted).max())


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("suite", nargs="?", default="bookworm")
    words.add_argument("--mirror", help="where debootstrap takes packages from")
    given = words.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise SystemExit("tools/deployed_system.py: needs root and the package debootstrap")
    import torch_graft

    began = time.monotonic()
    with system(given.suite, given.mirror) as place:
        print(f"a system of {given.suite}: {time.monotonic() - began:.0f} s")
        folder = place / "srv"
        deploy_model(folder)
        package = Path(torch_graft.__file__).parent
        # oneDNN stays here, so the file needs the kernels that stand in for it.
        prepare = [package / "bin/graft-infer", folder / "model.graft", "--prepare"]
        run("env", "GRAFT_HOST_LIBRARY=0", *prepare)
        sizes = copy_part(package, folder / "graft")
        if found := foreign_files(place):
            raise SystemExit(f"the system has Python, torch or a compiler: {', '.join(found)}")
        inside = ["chroot", place, "env", "-i", "HOME=/srv", "PATH=/usr/bin:/bin"]
        infer = ["/srv/graft/bin/graft-infer", "/srv/model.graft"]
        print(run(*inside, *infer), end="")
        print(run(*inside, *infer, "--input", "/srv/x.npy", "--output", "/srv/out_"), end="")
        print(f"largest difference from this process: {compare(folder):.3g}")
    PAGE.write_text(publish(PAGE.read_text(), sizes, given.suite))
    print(f"the executable part has {sum(sizes.values()) / 1e6:.1f} MB, written into {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
