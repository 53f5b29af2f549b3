# python/torch_graft/cli/environment.py: the part of a bug report that is about the machine.
"""`python -m torch_graft doctor --report`: what torch.utils.collect_env reports, under its names.

collect_env.get_env_info() takes seconds, because it starts pip and conda. Here its single functions
are called, and the packages are read from their metadata.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distributions, entry_points, requires
from pathlib import Path

import torch
from torch.utils import collect_env

GROUPS = ("graft.drivers", "torch.backends")  # of packages that bring devices
_CPU = ("Architecture", "Model name", "CPU(s)", "Thread(s) per core", "Core(s) per socket",
        "Socket(s)", "NUMA node(s)", "Hypervisor vendor", "L2 cache", "L3 cache")  # fmt: skip
# Flags by which kernels and libraries are chosen.
_FLAGS = re.compile(r"\b(?:sse4_\d|avx\w*|amx\w*|fma|f16c|asimd\w*|sve\w*|bf16|i8mm)\b")
_SETTINGS = ("GRAFT_", "OMP_", "PYTORCH_", "TORCH_")


def lines() -> Iterator[str]:
    """One for each fact; a fact that cannot be had says why."""
    for name, fact in _FACTS.items():
        yield f"{name}: {_said(fact)}"
    for fact in (_cpu, _packages):
        yield from _said(fact).splitlines()


def _said(fact: Callable[[], str | None]) -> str:
    try:
        return fact() or "Could not collect"
    except Exception as error:
        return f"Could not collect ({type(error).__name__}: {error})"


def _asked(question: Callable[..., str | None]) -> Callable[[], str | None]:
    return lambda: question(collect_env.run)


def _python() -> str:
    return f"{' '.join(sys.version.split())} ({sys.maxsize.bit_length() + 1}-bit runtime)"


def _gpus() -> str:
    models = collect_env.get_gpu_info(collect_env.run)
    return "; ".join(models.splitlines()) if models else "none that nvidia-smi lists"


def _memory() -> str:
    rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(rows[name].split()[0]) / 2**20 for name in ("MemTotal", "MemAvailable"))
    return f"{total:.1f} GiB, {free:.1f} GiB of them available"


def _threads() -> str:
    return (f"{torch.get_num_threads()}, {torch.get_num_interop_threads()} between operators; "
            f"the process may use {len(os.sched_getaffinity(0))} processors")  # fmt: skip


def _settings() -> str:
    known = sorted(one for one in os.environ.items() if one[0].startswith(_SETTINGS))
    return ", ".join(f"{name}={value}" for name, value in known) or "none"


_FACTS: dict[str, Callable[[], str | None]] = {
    "PyTorch version": lambda: torch.__version__,
    "Is debug build": lambda: str(torch.version.debug),
    "CUDA used to build PyTorch": lambda: str(torch.version.cuda),
    "ROCM used to build PyTorch": lambda: str(torch.version.hip),
    "OS": _asked(collect_env.get_os),
    "GCC version": _asked(collect_env.get_gcc_version),
    "Clang version": _asked(collect_env.get_clang_version),
    "CMake version": _asked(collect_env.get_cmake_version),
    "Libc version": collect_env.get_libc_version,
    "Python version": _python,
    "Python platform": platform.platform,
    "GPU models and configuration": _gpus,
    "Memory": _memory,
    "Threads of PyTorch": _threads,
    "CPU capability of PyTorch": torch.backends.cpu.get_cpu_capability,
    f"Variables {'*, '.join(_SETTINGS)}*": _settings,
}


def _cpu() -> str:
    facts = dict(line.split(":", 1) for line in collect_env.get_cpu_info(collect_env.run).splitlines()
                 if ":" in line)  # fmt: skip
    rows = [f"  {name}: {facts[name].strip()}" for name in _CPU if name in facts]
    flags = " ".join(_FLAGS.findall(facts.get("Flags", "")))
    return "\n".join(["CPU:", *rows, f"  Flags that kernels are chosen by: {flags or 'none'}"])


def _packages() -> str:
    """The packages that collect_env lists, Graft's requirements, and those that bring devices."""
    named = {re.split(r"[^\w.-]", one)[0] for one in requires("torch-graft") or []}
    named |= {entry.dist.name for group in GROUPS for entry in entry_points(group=group)
              if entry.dist is not None}  # fmt: skip
    found = sorted({_frozen(one) for one in distributions() if one.metadata["Name"]})
    _, listed = collect_env.get_pip_packages(lambda _: (0, "\n".join(found), ""))
    wanted = {*(listed or "").splitlines(), *(one for one in found if one.split("==")[0] in named)}
    return "\n".join(f"[pip] {one}" for one in sorted(wanted))


def _frozen(package: Distribution) -> str:
    return f"{package.metadata['Name']}=={package.version}"
