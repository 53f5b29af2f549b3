"""PyTorch's distributed cases on any device and backend name, each run in a process of its own."""

from __future__ import annotations

import os

import pytest
import torch

from torch_conformance import SetupError
from torch_conformance.testing.distributed import add_distributed_tests
from vendor_file import DEVICES, OTHERS, pytest_of, ran, scope

RELAY = """
import torch
import torch.distributed as dist


class Relay(dist.ProcessGroup):
    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)

    def allreduce(self, tensors, options):
        assert all(t.device == torch.device("{device}", self.rank()) for t in tensors)
        copies = [t.cpu() for t in tensors]
        self.gloo.allreduce(copies, options).wait()
        for tensor, copy in zip(tensors, copies):
            tensor.copy_(copy)
        done = torch.futures.Future()
        done.set_result(tensors)
        return torch._C._distributed_c10d._create_work_from_future(done)

    def barrier(self, options):
        return self.gloo.barrier()

    def getBackendName(self):
        return "relay"


dist.Backend.register_backend("relay", Relay, devices=["{device}"])
"""


@pytest.mark.parametrize("device", OTHERS)
def test_distributed_cases_on_a_backend_that_pytorch_never_heard_of(device, tmp_path):
    """Through the host, for this test alone: each rank's tensors lie on its own device."""
    (tmp_path / "relay_package.py").write_text(RELAY.replace("{device}", device))
    source = f"""
        from torch_conformance.testing.distributed import add_distributed_tests
        add_distributed_tests(globals(), "{device}", "relay", world_size=2, plugin="relay_package",
            tests=["test_all_reduce_sum", "test_get_backend", "test_all_reduce_sum_cuda"])
    """
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    last, output = pytest_of(tmp_path, source, PYTHONPATH=path)
    assert "2 passed, 1 skipped" in last, output
    assert "Only Gloo and NCCL backends will have CUDA allReduce tested" in output


def test_device_without_a_backend_says_so(monkeypatch):
    monkeypatch.delitem(torch.distributed.Backend.default_device_backend_map, DEVICES[-1])
    added = add_distributed_tests(scope(), DEVICES[-1])
    (text,) = ran(added).values()
    assert f"'{DEVICES[-1]}' has no backend of torch.distributed" in text
    assert "register_backend" in text


def test_unknown_backend_and_case():
    with pytest.raises(SetupError, match=r"no backend of torch\.distributed is called 'nosuch'"):
        add_distributed_tests(scope(), backend="cpu:gloo,npu:nosuch")
