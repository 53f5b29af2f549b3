# src/torch/version/torchgen_names.py: what generate_registrations.py takes of torchgen, and of what it prints.
"""torchgen promises nothing: a new version of torch may have these elsewhere. tools/torch-audit reads
the imports and looks for them in a torch."""

from pathlib import Path

import torchgen
from torchgen.dest import RegisterDispatchKey, compute_native_function_declaration
from torchgen.dest.register_dispatch_key import gen_registration_helpers
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import (
    BackendIndex,
    BackendMetadata,
    DeviceCheckType,
    DispatchKey,
    NativeFunction,
    NativeFunctionsGroup,
)
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import Target

# The native functions and their tags, as parse_native_yaml takes them.
_FOLDER = Path(torchgen.__file__).parent / "packaged/ATen/native"
LISTS = (str(_FOLDER / "native_functions.yaml"), str(_FOLDER / "tags.yaml"))
# torchgen's structured generator accepts no PrivateUse1; XPU is its out-of-tree twin.
TWIN = DispatchKey.XPU
# What torchgen prints for that key -> what is compiled: patterns, in the order of their use.
PRINTED = (
    (r"at::detail::empty_strided_xpu", "graft::binding::empty_strided_graft"),
    (r"at::detail::empty_xpu", "graft::binding::empty_graft"),
    (r"(c10::)?\bOptionalDeviceGuard\b", "graft::binding::DeviceScope"),
    (r"TORCH_XPU_API |TORCH_API ", ""),
    (r"wrapper_XPU_", "wrapper_"),
)
