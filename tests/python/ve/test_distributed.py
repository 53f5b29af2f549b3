"""torch.distributed on tensors of the slot: every collective, work, futures, DDP and FSDP."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.testing import assert_close

import collective_checks as checks
from rank_processes import run_ranks, values

pytestmark = pytest.mark.one_mode


def on_the_slot(rank: int) -> dict[str, str | None]:
    checks.D = "ve"
    torch.ve.set_device(rank)
    return checks.collectives(rank, 2)


@pytest.fixture(scope="module")
def collectives() -> Any:
    return values(run_ranks(2, on_the_slot, timeout=280))


@pytest.mark.parametrize("case", checks.CASES)
def test_collective(collectives: Any, case: str) -> None:
    texts = {rank: results[case] for rank, results in enumerate(collectives) if results[case]}
    assert not texts, "\n".join(f"rank {rank}: {text}" for rank, text in texts.items())


def started(rank: int) -> torch.device:
    torch.ve.set_device(rank)
    dist.init_process_group("graft", rank=rank, world_size=2)
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
    from torch.distributed import _functional_collectives

    functional = _functional_collectives.all_reduce(torch.ones(3, device=device), "sum", [0, 1])
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


def sharded(rank: int) -> str:
    """FSDP gives memory back by storage.resize_(), which is a limit."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    device = started(rank)
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).to(device)
    fully_shard(net[0], mesh=init_device_mesh("ve", (2,)))
    assert net[0].weight.to_local().shape == (4, 4)
    assert net[0].weight.full_tensor().device == device
    try:
        net(torch.rand(4, 4, device=device)).sum().backward()
    except RuntimeError as error:
        return str(error)
    finally:
        dist.destroy_process_group()
    return ""


def test_fsdp_fails_where_it_gives_memory_back() -> None:
    texts = values(run_ranks(2, sharded))
    assert all("UntypedStorage.resize_: got unexpected device type ve" in text for text in texts)


@pytest.mark.parametrize("task", [futures, replicated], ids=lambda task: task.__name__)
def test_two_ranks(task: Any) -> None:
    assert values(run_ranks(2, task)) == [None, None]


def test_ddp_with_a_rank_on_each_card(card: dict[str, str]) -> None:
    ranks = run_ranks(2, replicated, EMULATED_VEDA_DEVICES="2", **card)
    assert values(ranks) == [None, None]
