"""torch.distributed on tensors of the slot: every collective, work, futures, DDP and FSDP."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.testing import assert_close

import distributed_checks as checks
from distributed_ranks import run_ranks, values

pytestmark = pytest.mark.one_mode


@pytest.fixture(scope="module")
def collectives() -> Any:
    return values(run_ranks(2, checks.collectives, 2, timeout=280, DEVICE="ve"))


@pytest.mark.parametrize("case", checks.CASES)
def test_collective(collectives: Any, case: str) -> None:
    texts = {rank: results[case] for rank, results in enumerate(collectives) if results[case]}
    assert not texts, "\n".join(f"rank {rank}: {text}" for rank, text in texts.items())


def started(rank: int) -> torch.device:
    torch.ve.set_device(rank)
    dist.init_process_group(rank=rank, world_size=2)
    return torch.device("ve", rank)


def futures(rank: int) -> None:
    device = started(rank)
    x = torch.full((1 << 16,), float(rank + 1), device=device)
    work = dist.all_reduce(x, async_op=True)
    doubled = work.get_future().then(lambda future: [one * 2 for one in future.value()])
    work.wait()
    assert x.tolist()[:2] == [3, 3]
    (result,) = doubled.wait()
    assert result.device == device
    assert result[0] == 6
    parts = [torch.zeros(3, device=device) for _ in range(2)]
    dist.all_gather(parts, torch.full((3,), float(rank), device=device), async_op=True).wait()
    assert [one[0].item() for one in parts] == [0, 1]
    functional = dist._functional_collectives.all_reduce(
        torch.ones(3, device=device), "sum", [0, 1]
    )
    assert (functional + 0).tolist() == [2, 2, 2]
    dist.destroy_process_group()


def replicated(rank: int) -> None:
    device = started(rank)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    alone = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    alone.load_state_dict(net.state_dict())
    both = torch.rand(4, 4)
    model = nn.parallel.DistributedDataParallel(net.to(device), device_ids=[rank])
    for network, x in ((model, both[2 * rank : 2 * rank + 2].to(device)), (alone, both)):
        optimizer = torch.optim.SGD(network.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
    assert_close([one.cpu() for one in net.parameters()], [*alone.parameters()])
    dist.destroy_process_group()


def sharded(rank: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    device = started(rank)
    mesh = init_device_mesh("ve", (2,))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    alone = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    alone.load_state_dict(net.state_dict())
    both = torch.rand(4, 4)
    net.to(device)
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    for network, x in ((net, both[2 * rank : 2 * rank + 2].to(device)), (alone, both)):
        optimizer = torch.optim.SGD(network.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
    assert_close([one.full_tensor().cpu() for one in net.parameters()], [*alone.parameters()])
    dist.destroy_process_group()


@pytest.mark.parametrize("task", [futures, replicated, sharded], ids=lambda task: task.__name__)
def test_two_ranks(task: Any) -> None:
    assert values(run_ranks(2, task)) == [None, None]
