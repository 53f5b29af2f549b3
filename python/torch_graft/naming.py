# python/torch_graft/naming.py: which name the device type gets.
"""The device's name: GRAFT_DEVICE_NAME, else that of the first package with devices, else "graft"."""

from __future__ import annotations

import keyword
import os
import re
from typing import NamedTuple

import torch

from torch_graft import drivers, ve
from torch_graft.drivers import Offer

DEFAULT = "graft"
VARIABLE = "GRAFT_DEVICE_NAME"
_SLOT_DEVICES = "GRAFT_VE_DEVICES"
_FREE = "privateuseone"  # the name of PyTorch's slot for a device type while nobody has it
_UNKNOWN = "at start of device string"  # in PyTorch's error for a name that it parses


class Serving(NamedTuple):
    """A package that offers a name and has devices; driver: what GRAFT_DEVICES calls its driver."""

    name: str
    entry: str
    package: str
    driver: str


def flaw(name: str) -> str | None:
    """Why a name cannot be a device type's; None when it can."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return "a name has lower-case letters, digits and underscores only, a letter first"
    if keyword.iskeyword(name):
        return f"'{name}' is a keyword of Python, so torch.{name} would be a syntax error"
    if name == _FREE:
        return "PyTorch uses this name for a device type without a name"
    try:
        torch.device(f"{name}:0")
    except RuntimeError as error:
        return _unparsed(name, str(error)) or _taken_attribute(name)
    return f"PyTorch has a device type '{name}' already"


def _unparsed(name: str, error: str) -> str | None:
    """rename_privateuse1_backend takes every name, also those that torch.device never parses."""
    if _UNKNOWN in error:
        return None
    what = "digits in the name of a device" if re.search(r"\d", name) else "this name"
    return (
        f"PyTorch {torch.__version__.partition('+')[0]} does not parse {what}; "
        f"torch.device says: {error}"
    )


def _taken_attribute(name: str) -> str | None:
    """What PyTorch would find in the way when it makes torch.<name>, tensor.<name>() and others."""
    for owner, where in ((torch, "torch"), (torch.Tensor, "torch.Tensor"),
                         (torch.nn.Module, "torch.nn.Module"),
                         (torch.UntypedStorage, "torch.UntypedStorage"),
                         (torch.TypedStorage, "torch.TypedStorage"),
                         (torch.nn.utils.rnn.PackedSequence, "PackedSequence")):  # fmt: skip
        for attribute in (name, f"is_{name}"):
            if hasattr(owner, attribute):
                return f"PyTorch already has {where}.{attribute}"
    return None


def choose(offered: list[Offer]) -> str:
    """The name. Loads the drivers of packages that offer one, unless the user has chosen.

    Warns of each name before it that cannot be, and of packages whose devices have to share it.
    """
    wanted = os.environ.get(VARIABLE)
    refused = []
    if wanted:
        problem = flaw(wanted)
        if problem is None:
            return wanted
        refused.append(_refusal(VARIABLE, wanted, problem))
    serving = with_devices(offered)
    chosen = DEFAULT
    for one in serving:
        problem = flaw(one.name)
        if problem is None:
            chosen = one.name
            break
        refused.append(_refusal(f"driver package '{one.entry}'", one.name, problem))
    for text in refused:
        drivers.tell(f"{text} The device is called '{chosen}' instead. Choose another name with "
                     f"{VARIABLE}.")  # fmt: skip
    if warning := conflict(chosen, serving):
        drivers.tell(warning)
    return chosen


def _refusal(source: str, name: str, problem: str) -> str:
    return f"{source} asks for the device name '{name}', which is not possible: {problem}."


def with_devices(offered: list[Offer]) -> list[Serving]:
    """Those that offer a name and have a device that counts, in the order of the devices' numbers."""
    named = [offer for offer in offered if offer.device_name]
    if not named:
        return []
    from torch_graft import _C

    return [
        Serving(str(offer.device_name), offer.entry, offer.package, driver)
        for driver, path in _C.early_drivers([offer.path for offer in named])
        for offer in named
        if os.path.realpath(offer.path) == path
    ]


def conflict(chosen: str, serving: list[Serving]) -> str | None:
    """What to say of packages whose devices have to share a name that only one of them offers."""
    listed = os.environ.get(_SLOT_DEVICES, "").split(",")
    carried = {item.partition(":")[0].strip() for item in listed}
    owner = next((one for one in serving if one.name == chosen), None)
    others = [one for one in serving if one.name != chosen and one.driver not in carried]
    if owner is None or not others:
        return None
    packages = " and ".join(f"'{one.package}'" for one in (owner, *others))
    other = others[0]
    return (
        f"The driver packages {packages} have devices, but PyTorch has one name for all of them: "
        f"'{chosen}', which '{owner.package}' offers, whose device has the lowest number. "
        f"{VARIABLE}={other.name} takes the name of '{other.package}' and {VARIABLE}={chosen} keeps "
        f"this one, both without this warning. GRAFT_DEVICES={other.driver} uses the devices of "
        f"'{other.package}' alone; GRAFT_DEVICES={owner.driver} with {_SLOT_DEVICES}={other.driver} "
        f"gives them torch.device('{ve.NAME}')."
    )
