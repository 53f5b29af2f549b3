"""What a group does beside moving numbers: order, futures, sizes, groups, CPU tensors."""

from __future__ import annotations

import copy
import os
import warnings

import torch
import torch.distributed as dist
from torch.testing import assert_close
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from collective_checks import TIMEOUT, outcomes

D = os.environ.get("DEVICE", "graft")


class Behaviour:
    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.total = sum(range(1, size + 1))

    def ones(self, *sizes: int) -> torch.Tensor:
        return torch.full(sizes or (4,), float(self.rank + 1), device=D)

    def tensors_of_the_cpu_go_beside_those_of_the_device(self) -> None:
        there, here, more = self.ones(), self.ones().cpu(), self.ones().cpu()
        works = [dist.all_reduce(t, async_op=True) for t in (there, here, there, more)]
        for work in works:
            work.wait()
        assert_close(there.cpu(), torch.full((4,), float(self.total * self.size)))
        assert_close(here, torch.full((4,), float(self.total)))
        assert_close(more, here)

    def many_chunks_arrive_in_place(self) -> None:
        count = 5 * 2**20 // 2 + 3  # ten megabytes and a bit: three chunks
        base = torch.arange(count, dtype=torch.float32) % 1024
        tensor = (base * (self.rank + 1)).to(D)
        dist.all_reduce(tensor)
        assert_close(tensor.cpu(), base * self.total)
        gathered = torch.zeros(self.size * count, device=D)
        dist.all_gather_into_tensor(gathered, base.to(D) + self.rank)
        assert_close(gathered.cpu(), torch.cat([base + r for r in range(self.size)]))
        piece = torch.zeros(count, device=D)
        dist.reduce_scatter_tensor(piece, (torch.cat([base + r for r in range(self.size)])).to(D))
        assert_close(piece.cpu(), (base + self.rank) * self.size)

    def strided_tensors_keep_their_strides(self) -> None:
        matrix = self.ones(3, 4)
        dist.all_reduce(matrix.t())
        assert_close(matrix.cpu(), torch.full((3, 4), float(self.total)))
        room = torch.zeros(4, 3, device=D).t()
        dist.broadcast(room if self.rank else self.ones(4, 3).t(), 0)
        if self.rank:
            assert_close(room.cpu(), torch.ones(3, 4))
            assert room.stride() == (1, 3)

    def empty_tensors_pass(self) -> None:
        dist.all_reduce(torch.zeros(0, device=D))
        dist.all_gather_into_tensor(torch.zeros(0, device=D), torch.zeros(0, device=D))
        dist.broadcast(torch.zeros(2, 0, device=D), 0)

    def parts_may_differ_in_size(self) -> None:
        parts = [torch.arange(2.0 * r) + r for r in range(self.size)]  # the first one is empty
        for asynchronous in (False, True):
            rooms = [torch.zeros(2 * r, device=D) for r in range(self.size)]
            work = dist.all_gather(rooms, parts[self.rank].to(D), async_op=asynchronous)
            if work is not None:
                work.wait()
            assert_close([room.cpu() for room in rooms], parts)
            given = [(torch.arange(3.0 + r) * (self.rank + 1)).to(D) for r in range(self.size)]
            room = torch.zeros(3 + self.rank, device=D)
            work = dist.reduce_scatter(room, given, async_op=asynchronous)
            if work is not None:
                work.wait()
            assert_close(room.cpu(), torch.arange(3.0 + self.rank) * self.total)
            for r, part in enumerate(given):  # what a rank gave is as it was
                assert_close(part.cpu(), torch.arange(3.0 + r) * (self.rank + 1))

    def float8_moves_and_is_not_reduced(self) -> None:
        parts = [torch.full((4,), float(r + 1)).to(torch.float8_e4m3fn) for r in range(self.size)]
        tensor = parts[self.rank].to(D)
        rooms = [torch.empty(4, dtype=tensor.dtype, device=D) for _ in parts]
        dist.all_gather(rooms, tensor)
        bytes_ = [room.view(torch.uint8).cpu() for room in rooms]
        assert_close(bytes_, [part.view(torch.uint8) for part in parts])
        text = ""
        try:
            dist.all_reduce(tensor)
        except RuntimeError as error:
            text = str(error)
        assert "convert it to bfloat16 first" in text

    def calls_of_other_kinds_coalesce_too(self) -> None:
        tensors = [torch.full((2**16,), float(self.rank + 1), device=D) for _ in range(3)]
        with dist._coalescing_manager(device=torch.device(D), async_ops=True) as manager:
            for tensor in tensors:
                dist.broadcast(tensor, 0)
        manager.wait()
        assert_close([t.cpu() for t in tensors], [torch.ones(2**16)] * 3)

    def work_follows_the_stream_that_called(self) -> None:
        side = torch.Stream(device=D)
        with side:
            tensor = torch.zeros(1000, device=D)
            for _ in range(50):
                tensor += 1  # the collective must see all fifty
            work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        doubled = tensor * 2  # on the current stream, after the wait
        assert_close(doubled.cpu(), torch.full((1000,), 100.0 * self.size))

    def futures_hold_tensors_of_the_device_in_stream_order(self) -> None:
        tensor = self.ones()
        future = dist.all_reduce(tensor, async_op=True).get_future()
        halved = future.then(lambda f: f.value()[0] / 2)
        assert_close(halved.wait().cpu(), torch.full((4,), self.total / 2))
        (held,) = future.wait()
        assert held.device.type == torch.device(D).type
        assert held.data_ptr() == tensor.data_ptr()

    def a_callback_may_start_another_collective_and_wait_for_it(self) -> None:
        def again(future: torch.futures.Future) -> torch.Tensor:
            return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

        future = dist.all_reduce(self.ones(), async_op=True).get_future().then(again)
        assert_close(future.wait().cpu(), torch.full((4,), float(self.total * self.size)))

    def works_tell_when_they_are_done(self) -> None:
        work = dist.all_reduce(self.ones(), async_op=True)
        work.wait()
        torch.get_device_module(D).synchronize()
        assert work.is_completed()
        assert work.is_success()
        assert [t.device.type for t in work.result()] == [torch.device(D).type]

    def receives_may_be_waited_for_in_any_order(self) -> None:
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        rooms = [torch.zeros(3, device=D) for _ in range(3)]
        works = [dist.irecv(room, before, tag=tag) for tag, room in enumerate(rooms)]
        sends = [
            dist.isend(torch.full((3,), float(tag), device=D), after, tag=tag) for tag in (2, 1, 0)
        ]
        for work in (works[2], works[0], works[1], *sends):
            work.wait()
        assert_close([room.cpu() for room in rooms], [torch.full((3,), float(n)) for n in range(3)])

    def a_receive_from_anybody_tells_who_sent(self) -> None:
        if self.rank == 0:
            seen = set()
            for _ in range(self.size - 1):
                room = torch.zeros(2, device=D)
                source = dist.recv(room)
                assert_close(room.cpu(), torch.full((2,), float(source + 1)))
                seen.add(source)
            assert seen == set(range(1, self.size))
        else:
            dist.send(self.ones(2), 0)

    def batched_sends_and_receives_meet(self) -> None:
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        room = torch.zeros(4, device=D)
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, self.ones(), after), dist.P2POp(dist.irecv, room, before)]
        )
        for work in works:
            work.wait()
        assert_close(room.cpu(), torch.full((4,), float(before + 1)))

    def barriers_pass(self) -> None:
        dist.barrier()
        dist.barrier(async_op=True).wait()
        dist.barrier(device_ids=[0])

    def objects_travel(self) -> None:
        everyone: list = [None] * self.size
        dist.all_gather_object(everyone, {"rank": self.rank})
        assert everyone == [{"rank": r} for r in range(self.size)]
        (tensor,) = [None] if self.rank else [torch.ones(2, device=D)]
        sent = [tensor]
        dist.broadcast_object_list(sent, 0)
        assert_close(sent[0].cpu(), torch.ones(2))

    def groups_of_some_ranks_are_their_own(self) -> None:
        pair = dist.new_group([0, 1])
        if self.rank < 2:
            tensor = self.ones()
            dist.all_reduce(tensor, group=pair)
            assert_close(tensor.cpu(), torch.full((4,), 3.0))
        dist.barrier()

    def a_distributed_sampler_gives_each_rank_its_rows(self) -> None:
        rows = TensorDataset(torch.arange(12.0))
        sampler: DistributedSampler = DistributedSampler(rows, seed=3)
        loader = DataLoader(rows, 2, sampler=sampler, pin_memory=True)
        mine = torch.cat([x.to(D, non_blocking=True) for (x,) in loader])
        everything = torch.zeros(12, device=D)
        dist.all_gather_into_tensor(everything, mine)
        assert sorted(everything.tolist()) == list(range(12))

    def a_mean_is_scaled_before_it_is_summed(self) -> None:
        tensor = self.ones()
        dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5))
        assert_close(tensor.cpu(), torch.full((4,), self.total / 2))

    def sums_of_bitwise_kinds_are_refused_where_they_have_no_meaning(self) -> None:
        for tensor, operation in [(self.ones(), dist.ReduceOp.BAND),
                                  (self.ones().bool(), dist.ReduceOp.AVG)]:  # fmt: skip
            try:
                dist.all_reduce(tensor, operation)
            except RuntimeError:
                continue
            raise AssertionError(f"{operation} of {tensor.dtype} was taken")

    def wrong_sizes_are_named(self) -> None:
        text = ""
        try:
            dist.all_gather_into_tensor(torch.zeros(3, device=D), torch.zeros(2, device=D))
        except RuntimeError as error:
            text = str(error)
        assert f"of 2 elements on {self.size} ranks needs an output of {2 * self.size}" in text
        assert ", got 3" in text

    def tensors_of_another_device_are_refused_with_both_names(self) -> None:
        text = ""
        try:
            dist.all_gather([torch.zeros(4) for _ in range(self.size)], self.ones())
        except RuntimeError as error:
            text = str(error)
        assert f"takes tensors of {torch.device(D).type}, not of cpu" in text

    def the_backend_has_options_that_copy(self) -> None:
        backend = dist.group.WORLD._get_backend(torch.device(D))
        assert copy.deepcopy(backend.options)._timeout == TIMEOUT
        assert backend.supports_splitting


def behaviour(rank: int, size: int) -> dict[str, str | None]:
    warnings.simplefilter("ignore")
    dist.init_process_group(timeout=TIMEOUT)
    mine = Behaviour(rank, size)
    return outcomes({name: getattr(mine, name) for name in NAMES})


NAMES = [name for name, value in vars(Behaviour).items()
         if callable(value) and not name.startswith("_") and name != "ones"]  # fmt: skip


def split_and_mesh(rank: int) -> None:
    """A group that is bound to a device splits; meshes are made of such groups."""
    dist.init_process_group(device_id=torch.device(D, 0), timeout=TIMEOUT)
    assert dist.group.WORLD.bound_device_id == torch.device(D, 0)
    half = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    # Two parts would meet under the same keys of the store, and could wait for each other.
    assert half._get_backend(torch.device(D)) is half._get_backend(torch.device("ve"))
    tensor = torch.full((4,), float(rank + 1), device=D)
    dist.all_reduce(tensor, group=half)
    assert_close(tensor.cpu(), torch.full((4,), 3.0 if rank < 2 else 7.0))
    mesh = dist.init_device_mesh(torch.device(D).type, (2, 2), mesh_dim_names=("rows", "columns"))
    tensor = torch.full((4,), float(rank + 1), device=D)
    dist.all_reduce(tensor, group=mesh["columns"].get_group())
    assert_close(tensor.cpu(), torch.full((4,), 3.0 if rank < 2 else 7.0))


def every_way_in(rank: int, backend: str | None) -> str:
    dist.init_process_group(backend, timeout=TIMEOUT)
    for tensor in (torch.ones(3, device=D), torch.ones(3, device="ve"), torch.ones(3)):
        dist.all_reduce(tensor)
        assert_close(tensor.cpu(), torch.full((3,), 2.0))
    group = dist.group.WORLD
    return ",".join(sorted(device.type for device in group._device_types))


def mismatched(rank: int) -> str:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL: shapes that differ between the ranks."""
    dist.init_process_group(timeout=TIMEOUT)
    dist.all_reduce(torch.ones(3, device=D))
    try:
        dist.all_reduce(torch.ones(3 + rank, device=D))
    except RuntimeError as error:
        return str(error)
    return "nothing was raised"


def killed(rank: int) -> tuple[str, float]:
    """Rank 1 dies; the others wait for it in a collective."""
    import signal
    import time

    dist.init_process_group(timeout=TIMEOUT)
    dist.all_reduce(torch.ones(3, device=D))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        for _ in range(3):
            tensor = torch.ones(2**20, device=D)
            dist.all_reduce(tensor)
            tensor.cpu()  # the driver's collectives fail when the device comes to them
    except RuntimeError as error:
        return str(error), time.monotonic() - began
    return "nothing was raised", 0.0


def late(rank: int) -> str:
    """Rank 1 does not come to the second collective before the timeout."""
    import time
    from datetime import timedelta

    dist.init_process_group(timeout=timedelta(seconds=2))
    dist.all_reduce(torch.ones(3, device=D))
    if rank == 1:
        time.sleep(7)
        return ""
    try:
        tensor = torch.ones(3, device=D)
        dist.all_reduce(tensor)
        tensor.cpu()
    except RuntimeError as error:
        return str(error)
    return "nothing was raised"


def without_rendezvous(rank: int) -> str:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        os.environ.pop(name, None)
    try:
        dist.init_process_group()
    except ValueError as error:
        return str(error)
    return "nothing was raised"
