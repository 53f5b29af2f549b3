# python/torch_graft/private_names.py: every name that is private to torch and that Python code here uses.
"""Nothing promises these names: a new version of torch may move them. They are looked up at their
first use, so that importing this module imports nothing.

    from torch_graft import private_names as inside
    inside.privateuse1_name()

TORCH has one row for each: our name, and where torch has it, "module:path". "Class()._name" is an
attribute of the class's instances, and becomes a function of the instance. Where versions differ, a
row is a tuple: the first place that exists counts. tools/torch-audit checks the rows against a torch.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import operator
import sys
from typing import Any

Place = str | tuple[str, ...]

_AOT = "torch._functorch._aot_autograd"
_C10D = "torch._C._distributed_c10d"
_MAKERS = "torch.utils.backend_registration"

TORCH: dict[str, Place] = {
    # The device type and its dispatch key.
    "DispatchKey": "torch._C:DispatchKey",
    "including_key": "torch._C:_IncludeDispatchKeyGuard",
    "privateuse1_name": "torch._C:_get_privateuse1_backend_name",
    "register_device_module": "torch:_register_device_module",
    "generate_module_methods": f"{_MAKERS}:_generate_module_methods_for_privateuse1_backend",
    "generate_packed_sequence_methods": (
        f"{_MAKERS}:_generate_packed_sequence_methods_for_privateuse1_backend"
    ),
    "generate_storage_methods": f"{_MAKERS}:_generate_storage_methods_for_privateuse1_backend",
    "generate_tensor_methods": f"{_MAKERS}:_generate_tensor_methods_for_privateuse1_backend",
    "validated_location": "torch.serialization:_validate_device",
    # Tensors, storages, modules, operators.
    "autograd_version": "torch:Tensor()._version",
    "saved_tensors_hooks_now": "torch._C._autograd:_top_saved_tensors_default_hooks",
    "coo_indices": "torch:Tensor._indices",
    "coo_values": "torch:Tensor._values",
    "tensor_accumulation_hooks": "torch:Tensor()._post_accumulate_grad_hooks",
    "tensor_backward_hooks": "torch:Tensor()._backward_hooks",
    "optimizer_step_post_hooks": "torch.optim:Optimizer()._optimizer_step_post_hooks",
    "optimizer_step_pre_hooks": "torch.optim:Optimizer()._optimizer_step_pre_hooks",
    "nested_offsets": "torch:Tensor._nested_tensor_storage_offsets",
    "nested_sizes": "torch:Tensor._nested_tensor_size",
    "nested_strides": "torch:Tensor._nested_tensor_strides",
    "int8_product": "torch:_int_mm",
    "int8_weight_product": "torch:_weight_int8pack_mm",
    "nested_from_buffer": "torch:_nested_view_from_buffer_copy",
    "neg_view": "torch:_neg_view",
    "to_copy": "torch:ops.aten._to_copy",
    "storage_address": "torch:UntypedStorage()._cdata",
    "storage_if_alive": "torch:UntypedStorage._new_with_weak_ptr",
    "module_buffers": "torch.nn:Module()._buffers",
    "module_parameters": "torch.nn:Module()._parameters",
    "module_backward_hooks": "torch.nn:Module()._backward_hooks",
    "module_forward_hooks": "torch.nn:Module()._forward_hooks",
    "module_forward_pre_hooks": "torch.nn:Module()._forward_pre_hooks",
    "OpOverload": "torch._ops:OpOverload",
    "operator_schema": "torch._ops:OpOverload()._schema",
    "TorchDispatchMode": "torch.utils._python_dispatch:TorchDispatchMode",
    "dispatch_cache": "torch._ops:OpOverload()._dispatch_cache",
    "has_kernel_for_key": "torch._C:_dispatch_has_kernel_for_dispatch_key",
    "library_impls": "torch.library:_impls",
    "out_dtype": "torch._higher_order_ops.out_dtype:out_dtype",
    "out_dtype_dense": "torch._higher_order_ops.out_dtype:out_dtype_dense",
    "flex_attention_device_check": "torch.nn.attention.flex_attention:_validate_device",
    "flex_attention_dense": "torch._higher_order_ops.flex_attention:sdpa_dense",
    "graphsafe_run_with_rng_state": "torch._prims.rng_prims:graphsafe_run_with_rng_state",
    # Nested Python containers.
    "key_text": "torch.utils._pytree:keystr",
    "tree_flatten": "torch.utils._pytree:tree_flatten",
    "tree_flatten_with_path": "torch.utils._pytree:tree_flatten_with_path",
    "tree_leaves": "torch.utils._pytree:tree_leaves",
    "tree_unflatten": "torch.utils._pytree:tree_unflatten",
    # Dynamo and Inductor.
    "DeviceInterface": "torch._dynamo.device_interface:DeviceInterface",
    "register_interface_for_device": "torch._dynamo.device_interface:register_interface_for_device",
    "GenericDeviceVariable": "torch._dynamo.variables.ctx_manager:GenericDeviceVariable",
    "register_device_context_manager": (
        "torch._dynamo.variables.ctx_manager:register_device_context_manager"
    ),
    "AttrSource": "torch._dynamo.source:AttrSource",
    "ConstantSource": "torch._dynamo.source:ConstantSource",
    "GuardBuilder": "torch._dynamo.guards:GuardBuilder",
    "ImportSource": "torch._dynamo.source:ImportSource",
    "install_guard": "torch._dynamo.guards:install_guard",
    "assume_constant_result": "torch._dynamo.decorators:assume_constant_result",
    "compile_session": "torch.compiler:_compile_session_context",
    "default_backend": "torch._dynamo.backends.registry:get_default_backend",
    "set_default_backend": "torch._dynamo.backends.registry:set_default_backend",
    "OptimizedModule": "torch._dynamo:OptimizedModule",
    "dynamo_config": "torch._dynamo.config",
    "reset_code": "torch._dynamo:reset_code",
    "InductorWrapper": "torch:_TorchCompileInductorWrapper",
    "CustomGraphModulePass": "torch._inductor.custom_graph_pass:CustomGraphModulePass",
    "register_backend_for_device": "torch._inductor.codegen.common:register_backend_for_device",
    # Fake tensors and AOTAutograd.
    "FakeTensor": "torch._subclasses:FakeTensor",
    "FakeTensorMode": "torch._subclasses:FakeTensorMode",
    "unset_fake_temporarily": "torch._subclasses.fake_tensor:unset_fake_temporarily",
    "tracing": "torch._guards:tracing",
    "TracingContext": "torch._guards:TracingContext",
    "aot_autograd": "torch._dynamo.backends.common:aot_autograd",
    "functorch_config": "torch._functorch.config",
    "core_aten_decompositions": "torch._decomp:core_aten_decompositions",
    "min_cut_partition": "torch._functorch.partitioners:min_cut_rematerialization_partition",
    "make_boxed_func": f"{_AOT}.utils:make_boxed_func",
    "register_graphsafe_rng_device_type": f"{_AOT}.utils:register_graphsafe_rng_device_type",
    "MutationType": f"{_AOT}.schemas:MutationType",
    "OutputType": f"{_AOT}.schemas:OutputType",
    "BufferAOTInput": f"{_AOT}.descriptors:BufferAOTInput",
    "ParamAOTInput": f"{_AOT}.descriptors:ParamAOTInput",
    "TangentAOTInput": f"{_AOT}.descriptors:TangentAOTInput",
    "InputMutationAOTOutput": f"{_AOT}.descriptors:InputMutationAOTOutput",
    "SavedForBackwardsAOTOutput": f"{_AOT}.descriptors:SavedForBackwardsAOTOutput",
    # Process groups.
    "group_backend": f"{_C10D}:ProcessGroup._get_backend",
    "make_fake_process_group": f"{_C10D}:FakeProcessGroup._create_internal",
    "number_sequences": f"{_C10D}:Backend._set_sequence_number_for_group",
    "process_group_wrapper": "torch.distributed.distributed_c10d:_create_process_group_wrapper",
    "register_group_backend": f"{_C10D}:ProcessGroup._register_backend",
    "sequence_number": f"{_C10D}:Backend._get_sequence_number_for_group",
    "set_default_group_backend": f"{_C10D}:ProcessGroup._set_default_backend",
}  # fmt: skip

# What is read of objects that torch hands over, by the private class or module that has it.
MEMBERS: dict[str, tuple[str, ...]] = {
    "torch._dynamo.config": (
        "accumulated_recompile_limit", "allow_rnn", "patch", "recompile_limit",
        "skip_nnmodule_hook_guards", "specialize_float", "specialize_int",
    ),
    "torch._dynamo.guards:GuardBuilder": ("EQUALS_MATCH",),
    "torch._dynamo.source:AttrSource": ("make_guard",),
    "torch._functorch.config": ("force_non_lazy_backward_lowering", "patch"),
    "torch._guards:TracingContext": ("fw_metadata", "get", "output_strides", "try_get"),
    "torch._ops:OpOverload": ("py_impl", "py_kernels", "tags"),
    "torch._subclasses:FakeTensorMode": ("cache_clear",),
    f"{_AOT}.descriptors:InputMutationAOTOutput": ("mutated_input",),
    f"{_AOT}.descriptors:PlainAOTInput": ("idx",),
    f"{_AOT}.schemas:InputAliasInfo": ("mutation_type",),
    f"{_AOT}.schemas:MutationType": ("MUTATED_OUT_GRAPH",),
    f"{_AOT}.schemas:OutputAliasInfo": ("output_type",),
    f"{_AOT}.schemas:OutputType": ("non_alias",),
    f"{_AOT}.schemas:ViewAndMutationMeta": (
        "input_info", "num_intermediate_bases", "output_info", "static_input_indices", "tokens",
    ),
}  # fmt: skip


class MissingName(ImportError):
    """The installed torch has a name of TORCH at none of its places."""


def places(name: str) -> tuple[str, ...]:
    """Where versions of torch have this name of TORCH, in the order in which they are tried."""
    row = TORCH[name]
    return (row,) if isinstance(row, str) else row


def module_of(name: str) -> str:
    """The module that has this name of TORCH; it is not imported. Raises MissingName."""
    for place in places(name):
        module = place.partition(":")[0]
        if _exists(module):
            return module
    raise MissingName(_missing(name))


def _exists(module: str) -> bool:
    if module in sys.modules:
        return True
    folders, parts = None, module.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        spec = importlib.machinery.PathFinder.find_spec(name, folders)
        if spec is None:
            return False
        folders = spec.submodule_search_locations
    return True


def found_at(place: str) -> Any:
    """What a place of TORCH stands for. Raises ImportError or AttributeError if it does not exist."""
    module, _, path = place.partition(":")
    found = importlib.import_module(module)
    owner, of_instances, attribute = path.partition("().")
    for part in owner.split(".") if owner else ():
        found = getattr(found, part)
    return operator.attrgetter(attribute) if of_instances else found


def compile_events() -> list[str]:
    """What PyTorch calls its first compilations where it logs the use of its API."""
    return ["torch.compile", "torch._dynamo.optimize", "torch._dynamo.export"]


def _missing(name: str) -> str:
    torch = sys.modules.get("torch")
    return (
        f"torch {getattr(torch, '__version__', '?')} has no {' or '.join(places(name))}, which Graft "
        f"calls {name}: install a version of torch that this torch-graft was made for, or write "
        "the new place of the name into torch_graft/private_names.py"
    )


def __getattr__(name: str) -> Any:
    if name not in TORCH:
        raise AttributeError(f"torch_graft.private_names has no row '{name}'")
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
    raise MissingName(_missing(name))
