# python/torch_graft/cli/settings.py: the table of the environment variables that Graft reads.
"""Each variable stands here once. docs/use/settings.md is written from this table, the doctor prints it, and
tools/check_design.py compares it with the code that reads variables.

Readers are core, binding, the drivers by name, tests and build; the first one gives the section of the page.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import NamedTuple

PREFIX = "GRAFT_"
PAGE = "docs/use/settings.md"
_NEAR = 0.85  # how much of a name must agree for a slip of the hand


class Setting(NamedTuple):
    """readers: names with commas between. meaning: what the variable is or does. page: more, from docs/use."""

    name: str
    readers: str
    values: str
    default: str
    meaning: str
    page: str = ""

    @property
    def for_users(self) -> bool:
        return self.readers not in ("tests", "build")


# Literals only: tools read the rows without importing this file.
# fmt: off
ROWS = (
    ("GRAFT_DRIVER_PATH", "core", "absolute paths, `:` between them", "none",
     "names driver libraries beside those of installed packages", "../drivers/finding.md"),
    ("GRAFT_DEVICES", "core", "list with commas: drivers or `driver:number`, such as `cuda,opencl:1,host`",
     "all devices of all drivers, simulated ones only if there is no other",
     "chooses the devices and their order", "../drivers/finding.md"),
    ("GRAFT_VE_DEVICES", "core, binding", "as `GRAFT_DEVICES`", "`veda`",
     "chooses the devices of `torch.device(\"ve\")`", "ve.md"),
    ("GRAFT_TIMEOUT", "core", "seconds, such as `30` or `0.5`; `0`: no limit", "no limit",
     "ends a longer wait for a device with an error that names the operator", "../drivers/finding.md"),
    ("GRAFT_DRIVER_TRACE", "core, trace driver", "`1`, or a list with commas of `key=value`", "off",
     "puts a layer in front of each driver that checks its calls, logs them and plants faults",
     "../drivers/trace.md"),
    ("GRAFT_NO_CACHING", "core", "`1` or `0`", "`0`",
     "`1` asks the driver for the memory of each tensor and frees it at once, which is slow and finds uses after free",
     "memory.md"),
    ("GRAFT_CACHE_DIR", "core", "a folder", "`$XDG_CACHE_HOME/graft`, else `~/.cache/graft`",
     "where compiled kernels and tunings are kept", "../develop/kernels.md#where-compiled-kernels-live"),
    ("GRAFT_CACHE_LIMIT", "core", "bytes; `0` keeps nothing", "268435456",
     "bounds the size of that folder", "../develop/kernels.md#where-compiled-kernels-live"),
    ("GRAFT_PROGRESS", "core", "`1` or `0`", "`1` on a terminal, else `0`",
     "`1` prints a line while kernels are compiled for more than two seconds", "logging.md"),
    ("GRAFT_DUMP_KERNELS", "core", "a folder", "none",
     "writes every kernel that is asked for, in each dialect that can express it", "../develop/kernels.md"),
    ("GRAFT_GRAPH_COMPILER", "core", "`1` or `0`", "`1`",
     "`0` gives no graph to the compiler that the device's driver brings", "../drivers/graph-compiler.md"),
    ("GRAFT_VENDOR_KERNELS", "core", "`always`, `never`, `measure`", "`always`",
     "`never` lets compiled graphs fuse operators although the driver has kernels for them, `measure` where that is faster",
     "../drivers/operations.md#compiled-graphs"),

    ("GRAFT_DEVICE_NAME", "binding", "lower-case letters, underscores, digits if PyTorch takes them",
     "that of the first driver package with devices, else `graft`", "names the device type", "naming.md"),
    ("GRAFT_DRIVER_PACKAGES", "binding", "names of packages, `,` between them; empty: none",
     "all installed packages", "names the packages whose drivers are asked; code of others is not imported",
     "trust.md"),
    ("GRAFT_FALLBACK", "binding", "`off`, `warn`, `forbid`", "`warn`",
     "what Graft does if the CPU has to run an operator: count it, count and warn, or refuse",
     "fallback.md"),
    ("GRAFT_TRACE", "binding", "`1`", "off",
     "`1` adds the Python stack of the call to errors that are reported later", "device-module.md"),
    ("GRAFT_COLLECTIVES", "binding", "`auto`, `native`, `staged`", "`auto`",
     "chooses the engine of collectives, the same on all ranks", "distributed.md"),
    ("GRAFT_INTEGRATIONS", "binding", "list with commas of libraries; `none`", "those that the script imports",
     "chooses the libraries that `torch_graft run` lets use the device", "libraries/README.md"),
    ("GRAFT_SCRIPT", "binding", "a path", "none",
     "the script of a rank; `torch_graft run` sets it for the processes that the script spawns"),
    ("GRAFT_VE", "binding", "`1` or `0`", "`1`",
     "`0` leaves `torch.device(\"ve\")` to other packages", "ve.md"),

    ("GRAFT_HOST_DEVICES", "host driver", "0 to 64", "1", "the number of virtual devices"),
    ("GRAFT_HOST_MEMORY", "host driver", "bytes", "the machine's, or the container's limit",
     "the memory of each device"),
    ("GRAFT_HOST_MODE", "host driver", "`async`, `inline`", "only small work runs on the calling thread",
     "`async` runs nothing on the calling thread, `inline` everything but callbacks while the stream is idle"),
    ("GRAFT_HOST_THREADS", "host driver", "1 to 1024",
     "`OMP_NUM_THREADS`, else the processors that affinity and container allow",
     "the number of threads that compute, the calling one included"),
    ("GRAFT_HOST_ISA", "host driver", "`v2`, `v3`, `v4`, `none`", "this processor",
     "makes the devices processors of this x86-64 level: their facts, kernel pack, compiled kernels and oneDNN; `none`: this processor without a kernel pack"),
    ("GRAFT_HOST_TARGET", "host driver, core", "`v2`, `v3`, `v4`", "off",
     "compiles kernels for this x86-64 level and runs none: results are junk. `graft-infer --prepare --processor` sets it",
     "deploy/programs.md#kernels-for-other-processors"),
    ("GRAFT_CC", "host driver", "a command, with options", "`cc`, else the zig of `GRAFT_ZIG`",
     "the C compiler for kernels that were not built ahead of time", "without-compiler.md"),
    ("GRAFT_CC_TIMEOUT", "host driver", "seconds; `0`: no limit", "120",
     "how long the compiler may take for a kernel before it is killed and not asked again", "without-compiler.md"),
    ("GRAFT_ZIG", "host driver, binding", "a path; empty: no zig",
     "that of the extra `torch-graft[compiler]`, if it is installed",
     "a zig that compiles C if there is no `cc`", "without-compiler.md"),
    ("GRAFT_HOST_SIMULATE", "host driver, binding", "list with commas of `key=value`; `1`: all defaults", "off",
     "gives streams and collectives a modelled duration, and a process many ranks", "simulation.md"),
    ("GRAFT_HOST_PROTECT", "host driver", "`1` or `0`", "`1`",
     "`0` lets host code read device memory; if `GRAFT_HOST_SHARE` is `0` as well, its pages may be huge"),
    ("GRAFT_HOST_VIEW", "host driver", "`1` or `0`", "`1`",
     "`0` leaves `memory_host_view` out, as a device whose memory the host cannot reach"),
    ("GRAFT_HOST_SHARE", "host driver", "`1` or `0`", "`1`",
     "`0` leaves `memory_export`, `memory_import` and `memory_release` out, as a device whose memory no other process reaches",
     "multiprocessing.md"),
    ("GRAFT_HOST_LIBRARY", "host driver", "`1` or `0`", "`1`",
     "`0` leaves oneDNN and TBB out; the driver then starts threads"),
    ("GRAFT_HOST_FAULTS", "host driver", "list with commas of `kind:which`", "none",
     "makes chosen calls fail or hang, for tests"),

    ("GRAFT_OPENCL_DEVICES", "opencl driver",
     "list with commas: numbers (GPUs, accelerators, CPUs, in the platforms' order) or parts of a device's, vendor's or platform's name",
     "all", "chooses the driver's devices and their order", "opencl.md#choosing-a-device"),
    ("GRAFT_OPENCL_CLASS", "opencl driver", "`gpu`, `cpu`", "by the device's type",
     "chooses the family of kernels, so that a CPU can test the GPUs'", "opencl.md"),
    ("GRAFT_OPENCL_MEMORY", "opencl driver", "`svm`, `svm-fine`, `svm-coarse`, `usm`, `address`, `buffer`",
     "the best that the device offers", "chooses how device memory is allocated", "opencl.md"),
    ("GRAFT_OPENCL_STD", "opencl driver", "a language version, such as `CL1.2`",
     "the device's own; `CL3.0` where that brings sub-groups or collectives",
     "chooses the language version of kernels"),
    ("GRAFT_OPENCL_PROFILING", "opencl driver", "`1` or `0`", "`1`",
     "`0` keeps no times in queues, for runtimes that they slow down"),
    ("GRAFT_OPENCL_THREAD", "opencl driver", "`1` or `0`", "`1`",
     "`0` gives each command to OpenCL at its call, which then raises what OpenCL refuses"),
    ("GRAFT_OPENCL_LIBRARY", "opencl driver", "a library's name or path", "`libOpenCL.so.1`",
     "the ICD loader, or one vendor's library in its place", "opencl.md"),

    ("GRAFT_VEDA_LIBRARY", "veda driver", "a library's name or path", "`libveda.so.0`",
     "libveda; a named one that is missing is an error", "ve.md"),
    ("GRAFT_VE_MODE", "veda driver", "`omp`, `scalar`", "`omp`",
     "`omp` gives a stream all cores, `scalar` gives each stream one core"),
    ("GRAFT_VE_CC", "veda driver", "a command: `ncc`, or `clang --target=ve-linux`", "`ncc`",
     "compiles kernels for Vector Engines", "ve.md"),
    ("GRAFT_VE_LINK", "veda driver", "a command with `{cc}`, `{inputs}` and `{output}`",
     "`{cc} -shared -o {output} {inputs} -lm`; if `GRAFT_VE_CC` has `--target=ve`, `nld -shared -o {output} {inputs} -lm -lpthread -lc`, which was not tried on a card",
     "links their objects to the program's file", "ve.md"),

    ("GRAFT_SHARE", "tests", "`K/N`", "all", "runs the K-th of N parts of the cases"),
    ("GRAFT_FUZZ_SEEDS", "tests", "`first:count`", "24 of the order's", "chooses the seeds of the compiler's fuzzer", "compile.md"),
    ("GRAFT_TEST_DEVICE", "tests", "a device type", "`graft`", "chooses the device of many tests"),
    ("GRAFT_TEST_DRIVER", "tests", "a driver's name or path", "`host`",
     "chooses the driver of the kernels' torch-free tests"),
    ("GRAFT_LIMIT", "tests", "a name in tests/drivers/limited.cpp", "the first there",
     "chooses what the limited driver takes away"),
    ("GRAFT_LIMITED_DRIVER", "tests", "an absolute path", "the driver that it was built for",
     "the driver behind the limited driver"),
    ("GRAFT_TORCHES", "build", "folders of torch packages, `:` between them", "the torch of the environment",
     "chooses the versions of torch that a wheel has extensions for", "versions.md"),
)

# Variables of others that change what Graft does.
FOREIGN = (
    ("TORCH_DEVICE_BACKEND_AUTOLOAD", "PyTorch", "`1` or `0`", "`1`", "`0` does not attach Graft at `import torch`"),
    ("OMP_NUM_THREADS", "PyTorch", "a number", "all processors",
     "the number of the CPU's threads, and of the host driver's without `GRAFT_HOST_THREADS`"),
    ("VEDA_VISIBLE_DEVICES", "VEDA", "numbers with commas", "all", "chooses the Vector Engines that VEDA lists"),
    ("VE_NODE_NUMBER", "VEDA", "a number", "none", "the one Vector Engine that VEDA lists"),
)
# fmt: on

SETTINGS = tuple(Setting(*row) for row in ROWS)


def in_force(environment: Mapping[str, str]) -> list[tuple[Setting, str]]:
    """The variables of the table that are set, with their values."""
    known = (*SETTINGS, *(Setting(*row) for row in FOREIGN))
    return [(one, environment[one.name]) for one in known if one.name in environment]


def not_set(environment: Mapping[str, str]) -> list[str]:
    """The names that a user could set."""
    return [one.name for one in SETTINGS if one.for_users and one.name not in environment]


def unknown(environment: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """Variables that look like Graft's and are not in the table, with the name that was probably meant."""
    parts = {one.name.removeprefix(PREFIX): one.name for one in SETTINGS}
    found: list[tuple[str, str | None]] = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in parts:
            near = difflib.get_close_matches(name.removeprefix(PREFIX), parts, 1, _NEAR)
            found.append((name, parts[near[0]] if near else None))
    return found
