# conformance/torch_conformance/private_names.py: every name that is private to torch and that this package uses.
"""Nothing promises these names: a new version of torch may move them. They are looked up at their
first use, so that importing this module imports nothing.

    from torch_conformance import private_names as inside
    inside.privateuse1_name()

TORCH has one row for each: our name, and where torch has it, "module:path". "Class()._name" is an
attribute of the class's instances, and becomes a function of the instance. Where versions differ, a
row is a tuple: the first place that exists counts.
"""

from __future__ import annotations

import importlib
import operator
import sys
from typing import Any

Place = str | tuple[str, ...]

_TESTING = "torch.testing._internal"

TORCH: dict[str, Place] = {
    # The device type and its dispatch key.
    "dispatch_key_for_device": "torch._C:_dispatch_key_for_device",
    "privateuse1_name": "torch._C:_get_privateuse1_backend_name",
    # Tensors, storages, operators.
    "view_base": "torch:Tensor()._base",
    "is_zero_tensor": "torch:Tensor._is_zerotensor",
    "has_internal_overlap": "torch:_debug_has_internal_overlap",
    "neg_view": "torch:_neg_view",
    "zero_tensor": "torch:_efficientzerotensor",
    "storage_address": "torch:UntypedStorage()._cdata",
    "operator_schema": "torch._ops:OpOverload()._schema",
    "schema_of": "torch._C:_get_schema",
    "all_operator_names": "torch._C:_dispatch_get_all_op_names",
    "has_kernel_for_key": "torch._C:_dispatch_has_kernel_for_dispatch_key",
    "TorchDispatchMode": "torch.utils._python_dispatch:TorchDispatchMode",
    # torch's own tests.
    "op_db": f"{_TESTING}.common_methods_invocations:op_db",
    "module_db": f"{_TESTING}.common_modules:module_db",
    "optim_db": f"{_TESTING}.common_optimizers:optim_db",
    "BinaryUfuncInfo": f"{_TESTING}.opinfo.core:BinaryUfuncInfo",
    "UnaryUfuncInfo": f"{_TESTING}.opinfo.core:UnaryUfuncInfo",
    "ModuleErrorEnum": f"{_TESTING}.common_modules:ModuleErrorEnum",
    "OptimizerErrorEnum": f"{_TESTING}.common_optimizers:OptimizerErrorEnum",
    "TestCase": f"{_TESTING}.common_utils:TestCase",
    "TestParametrizer": f"{_TESTING}.common_utils:_TestParametrizer",
    "noncontiguous_like": f"{_TESTING}.common_utils:noncontiguous_like",
    "get_all_dtypes": f"{_TESTING}.common_dtype:get_all_dtypes",
    "default_tolerances": "torch.testing._comparison:default_tolerances",
    "PrivateUse1TestBase": f"{_TESTING}.common_device_type:PrivateUse1TestBase",
    "instantiate_device_type_tests": f"{_TESTING}.common_device_type:instantiate_device_type_tests",
    "is_privateuse1_available": f"{_TESTING}.common_device_type:_is_privateuse1_backend_available",
    "precisionOverride": f"{_TESTING}.common_device_type:precisionOverride",
    "toleranceOverride": f"{_TESTING}.common_device_type:toleranceOverride",
    "DistTestCases": f"{_TESTING}.common_distributed:DistTestCases",
    "DistTestBase": f"{_TESTING}.distributed.distributed_test:DistributedTest._DistTestBase",
    "TestDistBackend": f"{_TESTING}.distributed.distributed_test:TestDistBackend",
    "start_processes": f"{_TESTING}.common_distributed:MultiProcessTestCase._start_processes",
}  # fmt: skip


class MissingName(ImportError):
    """The installed torch has a name of TORCH at none of its places."""


def places(name: str) -> tuple[str, ...]:
    """Where versions of torch have this name of TORCH, in the order in which they are tried."""
    row = TORCH[name]
    return (row,) if isinstance(row, str) else row


def found_at(place: str) -> Any:
    """What a place of TORCH stands for. Raises ImportError or AttributeError if it does not exist."""
    module, _, path = place.partition(":")
    found = importlib.import_module(module)
    owner, of_instances, attribute = path.partition("().")
    for part in owner.split(".") if owner else ():
        found = getattr(found, part)
    return operator.attrgetter(attribute) if of_instances else found


def __getattr__(name: str) -> Any:
    if name not in TORCH:
        raise AttributeError(f"{__name__} has no row '{name}'")
    for place in places(name):
        try:
            found = found_at(place)
        except (AttributeError, ModuleNotFoundError) as error:
            other = error.name if isinstance(error, ModuleNotFoundError) else "torch"
            if (other or "").split(".")[0] != "torch":  # a package that torch needs is missing
                raise
            continue
        globals()[name] = found
        return found
    torch = sys.modules.get("torch")
    raise MissingName(
        f"torch {getattr(torch, '__version__', '?')} has no {' or '.join(places(name))}, which "
        f"torch-conformance calls {name}: install a version of torch that this version of "
        f"torch-conformance was made for, or write the place where this one has it into {__name__}"
    )
