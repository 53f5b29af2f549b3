# conformance/torch_conformance/lint/forms.py: what stands for one device, and the generic form of each.
"""Tables only: scan.py finds the places, and these rows say what to write there instead."""

from __future__ import annotations

import re
from typing import NamedTuple

TESTING = "torch_conformance.testing"
CURRENT = "torch.accelerator.current_accelerator()"
CUDA_OR_CPU = '(torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu"))'

# Functions of torch.cuda that torch.accelerator has too, with the same meaning on a CUDA machine.
# torch.accelerator takes its arguments by position only, so a call with keywords is not rewritten.
ACCELERATOR = {
    "current_device": "current_device_index", "mem_get_info": "get_memory_info",
    "set_device": "set_device_index",
} | {name: name for name in (
    "device_count", "empty_cache", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "synchronize",
)}  # fmt: skip

# Of these, the ones that ask whether CUDA is there: what follows may need CUDA itself.
GUARDS = ("is_available", "device_count")

# Other names below torch.cuda, by their beginning; the first that fits counts.
CUDA_NAMES = [
    (r"amp\.(autocast|custom_)", "torch.autocast(torch.device(device).type, ...), torch.amp.custom_fwd(device_type=...)"),
    (r"amp\.GradScaler", "torch.amp.GradScaler(torch.device(device).type)"),
    (r"(Stream|current_stream|default_stream)$", "torch.Stream(device), torch.accelerator.current_stream(device)"),
    (r"set_stream$", "torch.accelerator.set_stream(stream)"),
    (r"stream$", "the stream is a context manager itself: `with stream:`"),
    (r"StreamContext", "the stream is a context manager itself: `with stream:`"),
    (r"Event$", "torch.Event(device, enable_timing=...)"),
    (r"OutOfMemoryError", "torch.OutOfMemoryError"),
    (r"(CUDAGraph|graph|make_graphed_callables)", "torch.accelerator.Graph()"),
    (r"device$", "torch.accelerator.device_index(index)"),
    (r"(Bool|Byte|Char|Short|Int|Long|Half|BFloat16|Float|Double)(Tensor|Storage)",
     "torch.tensor(..., dtype=..., device=device)"),
    (r"(nvtx|cudart|jiterator|nccl|tunable|gds|green|Green|get_arch|get_gencode|current_blas|cudaStatus|check_error)",
     "CUDA's own, without a generic form: keep it in a file of tests for CUDA alone"),
    (r"is_bf16_supported", f"@requires_dtype(torch.bfloat16) of {TESTING}"),
]  # fmt: skip
CUDA_OTHER = "torch.get_device_module(device).{name}, which every device module may have"

# Other modules that speak of CUDA.
MODULES = [
    ("torch.version.cuda", "ask the device what it can do (a @requires_... decorator), not how torch was built"),
    ("torch.backends.cudnn", "a setting of one library: keep it behind a test for CUDA alone, or take it out"),
    ("torch.backends.cuda", "a setting of one library: keep it behind a test for CUDA alone, or take it out"),
]  # fmt: skip


class Name(NamedTuple):
    """A decorator, flag or function of a test library that is tied to CUDA."""

    pattern: str
    proposal: str
    instead: str = ""  # safe to write instead, when `module` gave the name
    module: str = ""


_DEVICE_TYPE = "torch.testing._internal.common_device_type"
_COMMON = "torch.testing._internal.common_utils"
NAMES = [
    Name(r"onlyCUDA(AndPRIVATEUSE1)?", "@onlyAccelerator", "onlyAccelerator", _DEVICE_TYPE),
    Name(r"dtypesIfCUDA", f"@declared_dtypes() of {TESTING}: what the device itself declares"),
    Name(r"expectedFailureCUDA\w*", "a row with its reason in the expectations file"),
    Name(r"skipCUDA(If\w*|VersionIn)|skipGPUIf\w*",
         f"a capability: @requires_dtype, @requires_streams, ... of {TESTING}"),
    Name(r"TEST_CUDA", "TEST_ACCELERATOR", "TEST_ACCELERATOR", _COMMON),
    Name(r"TEST_MULTIGPU", f"TEST_MULTIACCELERATOR, or @requires_devices(2) of {TESTING}"),
    Name(r"skip_if_lt_x_gpu|require_n_gpus\w*|at_least_x_gpu|nccl_skip_if_lt_x_gpu|skip_if_no_gpu",
         f"@requires_devices(count) of {TESTING}"),
    Name(r"requires_nccl\w*|skip_if_no_nccl", f"@requires_distributed of {TESTING}"),
    Name(r"requires?_?(cuda|CUDA|gpu|GPU)\w*|(HAS|TEST|IS)_\w*(CUDA|CUDNN|GPU|NCCL)\w*",
         f"a capability: onlyAccelerator, @requires_dtype, @requires_streams, ... of {TESTING}"),
    Name(r"SM\d+OrLater|PLATFORM_SUPPORTS_\w+",
         f"a capability: @requires_dtype, ... of {TESTING}"),
]  # fmt: skip

AUTOCAST = {"torch.cuda.amp.autocast": "torch.autocast", "torch.cuda.amp.GradScaler": "torch.amp.GradScaler"}  # fmt: skip
SKIPS = re.compile(r"(^|\.)(skip(If|Unless|if)|xfail|skip_but_pass_in_sandcastle_if)$")

CONDITION = (
    f"@onlyAccelerator, or a capability: @requires_dtype, @requires_streams, ... of {TESTING}"
)
COMPARED = (
    f"ask what the device can do (a @requires_... decorator of {TESTING}), not what it is called"
)
LISTED = (
    "instantiate_device_type_tests(cls, globals()), which gives the test every device that is there"
)
ONLY_FOR = "no only_for: the devices that are there decide, and @requires_... what they must do"
IMPORTED = "torch.accelerator, or torch.get_device_module(device)"
IS_CUDA = 'x.device.type == torch.device(device).type, or x.device.type != "cpu"'
IN_TEST = "take a `device` argument (instantiate_device_type_tests gives it)"
NCCL = "dist.get_default_backend_for_device(device)"


def name_row(name: str) -> Name | None:
    return next((row for row in NAMES if re.fullmatch(row.pattern, name)), None)


def cuda_proposal(rest: str) -> str:
    """The generic form of torch.cuda.<rest>."""
    if rest in ACCELERATOR:
        return f"torch.accelerator.{ACCELERATOR[rest]}"
    for pattern, proposal in CUDA_NAMES:
        if re.match(pattern, rest):
            return proposal
    return CUDA_OTHER.format(name=rest)
