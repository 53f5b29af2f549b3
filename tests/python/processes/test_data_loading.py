"""torch.utils.data feeds the device: pinned batches, workers, copies that overlap with work."""

import collections
import gc
import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)
from torch.utils.data._utils.pin_memory import pin_memory

from other_process import MadeByWorkers, stacked_and_pinned

pytestmark = pytest.mark.both_modes

Pair = collections.namedtuple("Pair", "tensor text")
ROWS = TensorDataset(torch.arange(20.0), torch.arange(20))


class Squares(IterableDataset):
    """Each worker yields its share of the squares."""

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        start, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return iter([float(n * n) for n in range(start, 12, step)])


class Holder:
    """A batch of a class of its own, which pins itself."""

    def __init__(self, rows):
        self.tensor = torch.stack([row for row, _ in rows])

    def pin_memory(self):
        self.tensor = self.tensor.pin_memory()
        return self


@pytest.mark.parametrize("workers", [0, 2])
def test_pinned_batches_arrive_whole(device, workers):
    loader = DataLoader(
        ROWS, 4, num_workers=workers, pin_memory=True, persistent_workers=workers > 0
    )
    for _ in range(2):
        doubled = []
        for x, y in loader:
            assert x.is_pinned()
            assert y.is_pinned()
            doubled.append(x.to(device, non_blocking=True) + y.to(device, non_blocking=True))
            # The pinned batch dies here, before the copy may have run.
            del x, y
        assert torch.cat(doubled).tolist() == [2.0 * n for n in range(20)]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_are_started_afresh_may_pin_themselves(device, method):
    """Such workers may use the device; their batches arrive in shared memory and are pinned there."""
    torch.ones(1, device=device)
    loader = DataLoader(
        ROWS,
        10,
        num_workers=1,
        pin_memory=True,
        collate_fn=stacked_and_pinned,
        multiprocessing_context=method,
    )
    seen = []
    for x in loader:
        assert x.is_pinned()
        seen.append(x.to(device, non_blocking=True) * 2)
        del x
    assert torch.cat(seen).tolist() == [2.0 * n for n in range(20)]


def test_workers_that_are_forked_after_the_device_was_used_may_not_use_it(device):
    used = torch.ones(2, device=device)
    for dataset, collate in ((ROWS, stacked_and_pinned), (MadeByWorkers(device), None)):
        loader = DataLoader(
            dataset, 2, num_workers=1, collate_fn=collate, multiprocessing_context="fork"
        )
        with pytest.raises(RuntimeError, match="Cannot re-initialize Graft in forked subprocess"):
            list(loader)
    assert used.add(1).tolist() == [2, 2]


def test_spawned_workers_may_send_tensors_of_the_device(device):
    loader = DataLoader(MadeByWorkers(device), None, num_workers=1, multiprocessing_context="spawn")
    rows = list(loader)
    assert [x.device.type for x in rows] == [device] * 4
    assert torch.stack(rows).tolist() == [[float(n)] * 3 for n in range(4)]


def test_workers_of_an_iterable_dataset(device):
    loader = DataLoader(Squares(), 3, num_workers=2, pin_memory=True, prefetch_factor=2)
    seen = torch.cat([x.to(device, non_blocking=True) for x in loader])
    assert sorted(seen.tolist()) == [float(n * n) for n in range(12)]


def test_every_container_is_pinned():
    given = {"list": [torch.ones(2)], "pair": Pair(torch.ones(1), "text"), "number": 3}
    pinned = pin_memory(given)
    assert pinned["list"][0].is_pinned()
    assert pinned["pair"].tensor.is_pinned()
    assert (pinned["pair"].text, pinned["number"]) == ("text", 3)
    for batch in DataLoader(ROWS, 5, collate_fn=Holder, pin_memory=True):
        assert batch.tensor.is_pinned()


def test_datasets_may_hold_tensors_of_the_device(device, module):
    rows = TensorDataset(torch.arange(20.0, device=device), torch.arange(20, device=device))
    with module.fallback.forbid():
        batches = list(DataLoader(rows, 4, shuffle=True, generator=torch.Generator()))
        part, rest = random_split(rows, [15, 5], torch.Generator().manual_seed(1))
    assert {x.device.type for x, _ in batches} == {device}
    assert sorted(torch.cat([x for x, _ in batches]).tolist()) == [float(n) for n in range(20)]
    assert (len(part), len(rest), part[0][0].device.type) == (15, 5, device)
    joined = default_collate([{"a": rows[0][0]}, {"a": rows[1][0]}])
    assert joined["a"].device.type == device


def test_samplers_draw_as_with_the_cpu(device):
    for sampler in (
        lambda: RandomSampler(ROWS, generator=torch.Generator().manual_seed(3)),
        lambda: WeightedRandomSampler(
            torch.ones(20), 8, generator=torch.Generator().manual_seed(3)
        ),
    ):
        loader = DataLoader(ROWS, batch_sampler=BatchSampler(sampler(), 4, True))
        seen = [y.to(device).tolist() for _, y in loader]
        assert seen == list(BatchSampler(sampler(), 4, True))


def test_a_copy_from_pinned_memory_does_not_wait(python):
    """While the stream is busy the call returns, so that the host can load the next batch."""
    seconds = python(
        """
        import time
        work = torch.rand(900, 900, device=D)
        batch = torch.rand(1 << 18).pin_memory()
        (work @ work, batch.to(D, non_blocking=True))
        torch.accelerator.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            work @ work
        queued = time.perf_counter()
        moved = batch.to(D, non_blocking=True)
        returned = time.perf_counter()
        torch.accelerator.synchronize()
        assert torch.equal(moved.cpu(), batch)
        print(json.dumps([returned - queued, time.perf_counter() - start]))
        """,
        GRAFT_HOST_MODE="async",
    ).value()
    assert seconds[0] < seconds[1] / 4


def test_prefetching_on_a_side_stream(device, module):
    """The pattern of torch.cuda's prefetchers: copy on one stream, compute on another."""
    side = torch.Stream(device)
    loader = DataLoader(ROWS, 4, pin_memory=True)
    model = nn.Linear(1, 1, bias=False, device=device)
    nn.init.constant_(model.weight, 3.0)

    def prefetched():
        ready = None
        for x, _ in loader:
            with side:
                moved = x.to(device, non_blocking=True)
            if ready is not None:
                yield ready
            module.current_stream().wait_stream(side)
            moved.record_stream(module.current_stream())
            ready = moved
        yield ready

    found = torch.cat([model(x[:, None]).detach().flatten() for x in prefetched()])
    assert_close(found.cpu(), torch.arange(20.0) * 3)


class Failing(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise ValueError(f"row {index} is damaged")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_dataset_reaches_the_caller(workers):
    with pytest.raises(ValueError, match="row 0 is damaged"):
        list(DataLoader(Failing(), 2, num_workers=workers, pin_memory=True))


def pinning_threads():
    return {thread for thread in threading.enumerate() if "_pin_memory_loop" in thread.name}


def test_the_thread_that_pins_ends_with_its_loader(device):
    before = pinning_threads()
    iterator = iter(DataLoader(ROWS, 4, num_workers=1, pin_memory=True))
    next(iterator)[0].to(device, non_blocking=True)
    assert pinning_threads() - before
    del iterator
    gc.collect()
    assert not pinning_threads() - before
