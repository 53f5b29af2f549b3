"""How the slot is taken, left alone, and shared with a package that wants it, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

# As veda-pytorch does: a guard, an allocator and kernels of C++, and the module torch.ve.
STAND_IN = """
import torch, types
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::VE> {};
C10_REGISTER_GUARD_IMPL(VE, Guard);

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = std::malloc(bytes);
    return {data, data, &std::free, c10::Device(c10::DeviceType::VE, 0)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};
static Memory memory;
REGISTER_ALLOCATOR(c10::DeviceType::VE, &memory);

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat>) {
  return at::detail::empty_generic(sizes, &memory, c10::DispatchKeySet(c10::DispatchKey::VE),
                                   type.value_or(at::kFloat), std::nullopt);
}
TORCH_LIBRARY_IMPL(aten, VE, m) { m.impl("empty.memory_format", &empty); }
TORCH_LIBRARY_IMPL(_, AutogradVE, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
'''


def start():
    load_inline("stand_in", SOURCE, build_directory=FOLDER, no_implicit_headers=True,
                is_python_module=False)
    module = types.ModuleType("torch.ve")
    module.stands_in = True
    torch._register_device_module("ve", module)
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: Any) -> str:
    folder = tmp_path_factory.mktemp("stand_in")
    built = folder / "built"
    built.mkdir()
    (folder / "stand_in_package.py").write_text(STAND_IN.replace("FOLDER", repr(str(built))))

    info = folder / "stand_in_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[torch.backends]\nveda_pytorch = stand_in_package:start\n"
    )
    return str(folder)


@pytest.mark.one_mode
@pytest.mark.parametrize("first", [True, False])
def test_graft_steps_back_where_another_package_serves_the_slot(
    python: Any, stand_in: str, first: bool
) -> None:
    installed = str(Path(torch.__file__).parents[1])
    ran = python(
        """
        from importlib.metadata import entry_points
        print([one.name for one in entry_points(group="torch.backends")])
        assert torch.ve.stands_in
        assert torch.empty(2, device="ve").device.type == "ve"
        assert not hasattr(torch.Tensor, "ve") and not hasattr(torch.UntypedStorage, "ve")
        if torch.graft.is_available(): assert (torch.ones(2, device="graft") + 1).tolist() == [2, 2]
        """,
        PYTHONPATH=stand_in if first else f"{installed}:{stand_in}",
    ).good()
    assert ("['veda_pytorch'" in ran.out) == first
    assert (
        ran.err.count("Graft does not serve torch.device('ve'), because another package does") == 1
    )
    assert "GRAFT_VE=0" in ran.err
    ran = python(
        "assert torch.ve.stands_in",
        PYTHONPATH=stand_in if first else f"{installed}:{stand_in}",
        GRAFT_VE="0",
    ).good()
    assert "Graft does not serve" not in ran.err


def test_switched_off(python: Any) -> None:
    ran = python(
        """
        assert not hasattr(torch, "ve") and not hasattr(torch.Tensor, "ve")
        assert not hasattr(torch.nn.Module, "ve") and not hasattr(torch.UntypedStorage, "ve")
        try:
            torch.ones(2, device="ve")
            raise SystemExit("made a tensor")
        except (RuntimeError, NotImplementedError):
            pass
        if torch.graft.is_available(): torch.ones(2, device="graft")
        import copy
        copy.deepcopy(torch.ones(2))
        """,
        GRAFT_VE="0",
    ).good()
    assert "leaves" not in ran.err
    ran = python("assert torch.ve.device_count() == 2", GRAFT_VE="yes").good()
    assert "GRAFT_VE=yes: expected 0 or 1; Graft uses 1" in ran.err


def test_names_that_are_not_there_are_told_of(python: Any) -> None:
    ran = python(
        """
        assert torch.ve.device_count() == 1
        assert torch.ones(1, device="ve").item() == 1
        """,
        GRAFT_VE_DEVICES="host:1,nonesuch",
    ).good()
    assert "GRAFT_VE_DEVICES" in ran.err
    assert "nonesuch" in ran.err
    ran = python("assert not torch.ve.is_available()", GRAFT_VE_DEVICES="nonesuch").good()
    assert "nonesuch" in ran.err
    ran = python("assert not torch.ve.is_available()", GRAFT_VE_DEVICES=None).good()
    assert "GRAFT_VE_DEVICES" not in ran.err


def test_the_order_is_the_lists(python: Any) -> None:
    python(
        """
        assert torch.ve.device_count() == 2
        if torch.graft.device_count():
            x = torch.full((2,), 5.0, device="graft:1")
            before = torch.graft.memory_allocated(1)
            y = x.to("ve:0")
            assert torch.ve.memory_allocated(0) == torch.graft.memory_allocated(1)
        """,
        GRAFT_VE_DEVICES="host:1,host:0",
    ).good()


def test_importing_opens_and_loads_nothing(python: Any) -> None:
    found = python(
        """
        print(json.dumps(["graft_host" in open("/proc/self/maps").read(), torch.ve.is_initialized()]))
        """
    ).value()
    assert found == [False, False]


def test_parts_import_as_modules(python: Any) -> None:
    python(
        """
        from torch.ve.amp import autocast, GradScaler
        from torch.ve.memory import memory_allocated
        import torch.ve.random, torch.ve.streams, torch.ve.graphs
        assert memory_allocated() == torch.ve.memory_allocated() == 0
        """
    ).good()
