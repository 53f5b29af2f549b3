# python/torch_graft/cli/doctor.py: says what was found, loaded and refused, why, and what to do.
"""python -m torch_graft doctor."""

from __future__ import annotations

import os
import platform
import shutil
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import torch_graft
from torch_graft import attaching, drivers, naming, toolchain, ve
from torch_graft import private_names as inside
from torch_graft.cli import settings, topology
from torch_graft.device import additions

if TYPE_CHECKING:
    from torch_graft._C import DeviceProperties
    from torch_graft.device import fallback


class Report:
    """Lines of the report, and how many of them ask for something."""

    def __init__(self) -> None:
        self.problems = 0

    def say(self, text: str) -> None:
        print(text)

    def good(self, text: str) -> None:
        print(f"  ok       {text}")

    def problem(self, text: str, remedy: str) -> None:
        self.problems += 1
        print(f"  PROBLEM  {text}")
        print(f"           {remedy}")


def _versions(report: Report) -> None:
    report.say(f"Graft {torch_graft.__version__}, torch {torch.__version__.split('+')[0]}, "
               f"Python {platform.python_version()}, {platform.platform()}")  # fmt: skip


def _settings(report: Report) -> None:
    report.say("Settings of the environment")
    for setting, value in settings.in_force(os.environ):
        report.say(f"  {setting.name:<30} {value!r}: {setting.meaning.replace('`', '')}")
    for name, near in settings.unknown(os.environ):
        if near is None:
            report.say(f"  {name} is no setting of Graft; a driver of another package may read it")
        else:
            report.problem(f"{name} is no setting of Graft", f"Did you mean {near}?")
    others = ", ".join(settings.not_set(os.environ))
    text = f"not set ({settings.PAGE} has their meaning): {others}"
    for row in textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False):
        report.say(f"  {row}")


def _attached(report: Report) -> str | None:
    report.say("PyTorch")
    torch_graft._autoload()
    name = attaching.attached_name()
    if name is None:
        owner = inside.privateuse1_name()
        report.problem(
            f"Graft is not attached; PyTorch's slot for a device type holds '{owner}'",
            "Uninstall the other package, or rebuild Graft for this torch if a warning above "
            "says that its library could not be loaded.",
        )
        return None
    report.good(f"attached as '{name}': use device='{name}' and torch.{name}")
    wanted = os.environ.get("GRAFT_DEVICE_NAME")
    if wanted and wanted != name:
        report.problem(
            f"GRAFT_DEVICE_NAME asks for '{wanted}', which is not possible: "
            f"{naming.flaw(wanted) or 'another package uses it'}",
            f"Choose another name. The device is called '{name}'.",
        )
    return name


def _drivers(report: Report) -> None:
    from torch_graft import _C

    report.say("Drivers")
    for path in filter(None, os.environ.get("GRAFT_DRIVER_PATH", "").split(":")):
        report.say(f"  named    {path} (by GRAFT_DRIVER_PATH)")
    offers, flaws = drivers.ask()
    for flaw in flaws:
        text, _, remedy = flaw.partition(". ")
        report.problem(text, remedy)
    for stranger in drivers.strangers():
        report.say(f"  not asked '{stranger}' (GRAFT_DRIVER_PACKAGES does not name it)")
    for offer in offers:
        report.say(f"  offered  {offer.path} (by the package entry '{offer.entry}')")
    _names(report, offers)
    absences = dict(_C.absences())
    asked = {device[0] for device in _C.found_devices()} | set(absences)
    refusals = _C.refusals()
    for name, path in _C.drivers():
        report.good(f"'{name}' loaded from {path}")
        if name in absences:
            report.say(f"           finds no device on this machine{_because(absences[name])}")
        elif name not in asked and path not in [refused for refused, _ in refusals]:
            report.say("           not used: GRAFT_DEVICES does not name this driver")
        for driver, ordinal, device, index in _C.found_devices():
            if driver == name:
                report.say(f"           {driver}:{ordinal} is '{device}' ({_use_of(index)})")
    for path, reason in refusals:
        report.problem(f"{path} was refused", reason)


def _names(report: Report, offers: list[drivers.Offer]) -> None:
    """Which package's name the devices have, and what became of the other names."""
    attached = str(attaching.attached_name())
    serving = naming.with_devices(offers)
    chosen = os.environ.get(naming.VARIABLE) == attached
    for offer in offers:
        if offer.device_name in (None, attached):
            continue
        name = str(offer.device_name)
        if name not in [one.name for one in serving]:
            why = "no device of this package is used"
        else:
            why = naming.flaw(name) or (
                f"{naming.VARIABLE} chooses '{attached}'" if chosen else "another package has it"
            )
        report.say(f"           the package '{offer.package}' offers the name '{name}', which the "
                   f"devices do not have: {why}")  # fmt: skip
    if not chosen and (text := naming.conflict(attached, serving)):
        what, _, remedy = text.partition(". ")
        report.problem(what, remedy)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _use_of(index: int) -> str:
    from torch_graft.device import accelerator

    if index < 0:
        return "not used; name this device in GRAFT_DEVICES to use it"
    if index < accelerator.device_count():
        return f"number {index}"
    return "carries a device of torch.device('ve')"


def _devices(report: Report, name: str) -> None:
    from torch_graft.device import accelerator

    report.say("Devices")
    count = accelerator.device_count()
    if count == 0:
        report.problem(
            "no device was found",
            "Install a package with a driver for your hardware, or name its library in "
            "GRAFT_DRIVER_PATH. The host driver simulates devices: see GRAFT_HOST_DEVICES and "
            "GRAFT_DEVICES above.",
        )
    for index in range(count):
        _device(report, f"{name}:{index}", accelerator.get_device_properties(index))
    for line in topology.links(name, count):
        report.say(line)


def _device(report: Report, where: str, facts: DeviceProperties) -> None:
    """One device's row: what it is, who computed on it, and what its driver says that it cannot."""
    text = (f"{where} is {facts.driver}:{facts.ordinal}, {facts.name} "
            f"({facts.total_memory / 2**30:.1f} GiB)")  # fmt: skip
    try:
        values, fallbacks = _compute(where)
    except RuntimeError as error:
        report.problem(f"{text} cannot compute", str(error))
        return
    if values != [2, 2]:
        report.problem(
            f"{text}: ones + 1 gives {values}", "The driver computes wrongly: ask its vendor."
        )
    elif fallbacks:
        report.problem(f"{text}; ones + 1 gives {values}, computed by the CPU", _why(fallbacks))
    else:
        report.good(f"{text}; ones + 1 gives {values}, computed by the device")
    for identity in topology.identity(facts):
        report.say(f"           {identity}")
    if facts.operations:
        report.say(
            f"           its driver has kernels of its vendor's for {facts.operations} operators"
        )
    if facts.graph_compiler:
        report.say("           its driver's graph compiler takes what torch.compile traces")
    for limit in _limits(facts):
        report.say(f"           {limit}")


def _compute(where: str) -> tuple[list[float], dict[str, fallback.Count]]:
    """ones + 1 on the device, and which of its operators the CPU ran instead."""
    from torch_graft.device import fallback

    with fallback.off():
        fallback.reset()
        values = (torch.ones(2, device=where) + 1).tolist()
        return values, fallback.counts()


def _why(fallbacks: dict[str, fallback.Count]) -> str:
    reasons = dict.fromkeys(
        f"{operator}: {count.reason or 'Graft has no kernel for it'}."
        for operator, count in fallbacks.items()
    )
    return " ".join(reasons)


def _limits(facts: DeviceProperties) -> list[str]:
    """What the driver states that the device cannot do, and runs on the CPU instead."""
    every = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64,
             torch.complex128, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
             torch.bool]  # fmt: skip
    missing = [str(one).removeprefix("torch.") for one in every if one not in facts.dtypes]
    limits = []
    if not facts.kernels:
        limits.append("no kernels: the driver states no dialect, or lacks kernel_launch")
    elif not facts.compiler:
        limits.append("no compiler: only the kernels of the driver's pack run")
    if missing:
        limits.append(f"no kernels for {', '.join(missing)}")
    if facts.max_arguments:
        limits.append(f"a kernel takes at most {facts.max_arguments} arguments")
    if facts.max_allocation < facts.total_memory:
        limits.append(f"one allocation has at most {facts.max_allocation / 2**30:.1f} GiB")
    return limits


def _additions(report: Report, name: str) -> None:
    for attribute, package in additions.added().items():
        report.say(f"  torch.{name}.{attribute} is of the package '{package}'")
    for flaw in additions.flaws():
        what, _, remedy = flaw.rpartition(". ")
        report.problem(what, remedy)


def _slot(report: Report) -> None:
    """The devices of torch.device("ve"), and what their driver needs of the machine."""
    report.say("torch.device('ve')")
    if not ve.attached():
        report.say(
            f"  not served by Graft: {ve.VARIABLE}=0, or another package serves this device type"
        )
        return
    count = torch.ve.device_count()
    if count == 0:
        report.say("  no device: see the drivers above; GRAFT_VE_DEVICES names them")
    served = set()
    for index in range(count):
        where = f"ve:{index}"
        try:
            facts = torch.ve.get_device_properties(index)
        except RuntimeError as error:
            report.problem(f"{where} does not open", str(error))
            continue
        served.add(facts.driver)
        _device(report, where, facts)
    _veda(report, needed="veda" in served)


def _veda(report: Report, needed: bool) -> None:
    """libveda and the compiler of the veda driver. What is missing is a problem if it is needed."""
    name = Path(os.environ.get("GRAFT_VEDA_LIBRARY") or "libveda.so.0").name
    maps = Path("/proc/self/maps").read_text().splitlines()
    loaded = {line.split(maxsplit=5)[5] for line in maps if line.endswith(f"/{name}")}
    report.say(f"  libveda: {', '.join(sorted(loaded)) or f'{name} is not loaded'}")
    compiler = (os.environ.get("GRAFT_VE_CC", "").split() or ["ncc"])[0]
    found = shutil.which(compiler)
    if found is None and needed:
        report.problem(
            f"the compiler '{compiler}' for Vector Engines is missing",
            "Operators run on the CPU instead. Install NEC's ncc, or name a compiler in "
            "GRAFT_VE_CC (drivers/veda/README.md).",
        )
    else:
        report.say(f"  compiler: {found or f'{compiler} is not in PATH'}")


def _compiler(report: Report, name: str) -> None:
    """Which compiler the host driver takes, after a kernel that is in no pack was asked for."""
    report.say("Compiler of the host driver")
    indices = _host_devices()
    if not indices:
        report.say("  not needed: no device belongs to the host driver")
        return
    fallbacks = _compute_unpacked(f"{name}:{indices[0]}")
    if fallbacks:
        report.problem(
            f"no kernel can be compiled: {_why(fallbacks)}",
            "Operators whose kernels were not built ahead of time run on the CPU instead. "
            "`pip install torch-graft[compiler]` installs a compiler that Graft finds without a setting.",
        )
    else:
        report.good(f"{_found_compiler()}; it compiled a kernel")


def _host_devices() -> list[int]:
    from torch_graft import _C
    from torch_graft.device import accelerator

    used = range(accelerator.device_count())
    return [index for driver, _, _, index in _C.found_devices()
            if driver == toolchain.DRIVER and index in used]  # fmt: skip


def _found_compiler() -> str:
    named = os.environ.get("GRAFT_CC", "").split()
    if named:
        return f"{shutil.which(named[0])}, which GRAFT_CC names"
    if system := shutil.which("cc"):
        return f"{system}, the system's"
    return f"{os.environ.get(toolchain.VARIABLE)}, of torch-graft[compiler]"


def _compute_unpacked(where: str) -> dict[str, fallback.Count]:
    """The fallbacks of an operator whose kernel no pack holds and, by then, no cache keeps."""
    from torch_graft.device import fallback

    with fallback.off():
        fallback.reset()
        torch.hypot(*torch.ones(2, 1, dtype=torch.float64, device=where))
        return fallback.counts()


def _integrations(report: Report) -> None:
    """Libraries of the environment that choose devices by a list of names, and what an integration changes in them."""
    from torch_graft.integrations import registry

    report.say("Libraries that an integration lets use the device (docs/use/libraries/README.md)")
    names = [name for name in registry.libraries() if registry.installed(name)]
    for name in names:
        if flaw := registry.flaw(name):
            report.say(f"  {name:<22} {flaw}: nothing is changed in it")
            continue
        report.say(
            f"  {name:<22} {registry.installed(name)}, by `import torch_graft.integrations.{name}`"
        )
        for how, what, why in registry.libraries()[name].changes:
            report.say(f"  {'':<22} {how} {what}: {why}")
    if not names:
        report.say("  none is installed")


def _environment(report: Report) -> None:
    from torch_graft.cli import environment

    report.say("Environment, in the words of torch.utils.collect_env")
    for line in environment.lines():
        report.say(f"  {line}")


@contextmanager
def _no_kernel_kept() -> Iterator[None]:
    """So that the compiler is tried, whatever the cache on the disk holds."""
    name, before = "GRAFT_CACHE_LIMIT", os.environ.get("GRAFT_CACHE_LIMIT")
    os.environ[name] = "0"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def examine(whole: bool = False) -> int:
    """Prints the report, if whole with the environment; returns 1 when something needs attention."""
    report = Report()
    _versions(report)
    _settings(report)  # before the doctor makes one of its own
    with warnings.catch_warnings(), _no_kernel_kept():
        warnings.simplefilter("ignore")  # the report itself says it
        name = _attached(report)
        if name is not None:
            if ve.attached():
                torch.ve.device_count()  # asks its drivers
            _drivers(report)
            _devices(report, name)
            _additions(report, name)
            _slot(report)
            _compiler(report, name)
            _integrations(report)
    if whole:
        _environment(report)
    report.say("Nothing to do." if report.problems == 0 else f"{report.problems} problem(s).")
    return 1 if report.problems else 0
