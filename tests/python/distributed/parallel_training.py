"""A small transformer, trained in every way of torch.distributed and by one process alone."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from collective_checks import TIMEOUT, outcomes

D = os.environ.get("DEVICE", "graft")
WORDS, WIDTH, HEAD, TOKENS, BATCH, STEPS = 24, 16, 4, 6, 8, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = self.before(x)
        # As many heads as this rank has: tensor parallel plans split them.
        q, k, v = (part(given).unflatten(-1, (-1, HEAD)).transpose(1, 2)
                   for part in (self.q, self.k, self.v))  # fmt: skip
        weights = torch.softmax(q @ k.transpose(-1, -2) / HEAD**0.5, -1)
        x = x + self.o((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.between(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def model() -> Model:
    torch.manual_seed(7)
    return Model()


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(WORDS, (BATCH, TOKENS + 1), generator=torch.Generator().manual_seed(3))
    return tokens[:, :-1].to(D), tokens[:, 1:].to(D)


def loss_of(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def optimizer_of(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False)


def alone() -> list[float]:
    trained = model().to(D)
    optimizer = optimizer_of(trained.parameters())
    losses = []
    for _ in range(STEPS):
        tokens, wanted = batch()
        loss = loss_of(trained(tokens), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


class Training:
    """Each method trains; _compare checks the mean of the ranks' losses against one process."""

    def __init__(self, rank: int, size: int, folder: str) -> None:
        self.rank, self.size, self.folder = rank, size, folder
        self.expected = alone()
        self.mesh = dist.init_device_mesh(torch.device(D).type, (size,))

    def _share(self, parts: int = 1, part: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, wanted = batch()
        rows = slice(self.rank * parts + part, None, self.size * parts)
        return tokens[rows], wanted[rows]

    def _train(self, trained: nn.Module, shared: bool = True) -> list[float]:
        optimizer = optimizer_of(trained.parameters())
        losses = []
        for _ in range(STEPS):
            tokens, wanted = self._share() if shared else batch()
            loss = loss_of(trained(tokens), wanted)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(self._mean(loss))
        return losses

    def _mean(self, loss: torch.Tensor) -> float:
        loss = loss.detach().clone()
        dist.all_reduce(loss, dist.ReduceOp.AVG)
        return loss.item()

    def _compare(self, losses: list[float], tolerance: float = 1e-4) -> None:
        assert losses[-1] < losses[0]
        assert_close(losses, self.expected, rtol=tolerance, atol=tolerance)

    def ddp(self) -> None:
        self._compare(self._train(DistributedDataParallel(model().to(D))))

    def ddp_measures_its_steps_on_the_device(self) -> None:
        wrapped = DistributedDataParallel(model().to(D))
        self._train(wrapped)
        measured = wrapped._get_ddp_logging_data()
        for part in ("forward_compute", "backward_compute", "backward_comm"):
            assert measured[f"avg_{part}_time"] > 0, (part, measured)

    def ddp_in_many_buckets(self) -> None:
        wrapped = DistributedDataParallel(
            model().to(D), bucket_cap_mb=0.002, gradient_as_bucket_view=True
        )
        self._compare(self._train(wrapped))

    def ddp_with_device_ids_and_a_static_graph(self) -> None:
        wrapped = DistributedDataParallel(model().to(D), device_ids=[0], static_graph=True)
        self._compare(self._train(wrapped))

    def ddp_no_sync_accumulates(self) -> None:
        wrapped = DistributedDataParallel(model().to(D))
        optimizer = optimizer_of(wrapped.parameters())
        losses = []
        for _ in range(STEPS):
            total = torch.zeros((), device=D)
            for part, context in enumerate([wrapped.no_sync(), contextlib.nullcontext()]):
                with context:
                    tokens, wanted = self._share(2, part)
                    loss = loss_of(wrapped(tokens), wanted) / 2
                    loss.backward()
                total += loss.detach()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(self._mean(total))
        self._compare(losses)

    def ddp_join_lets_ranks_end_early(self) -> None:
        wrapped = DistributedDataParallel(model().to(D))
        optimizer = optimizer_of(wrapped.parameters())
        with wrapped.join():
            for _ in range(2 + self.rank):
                tokens, wanted = self._share()
                loss_of(wrapped(tokens), wanted).backward()
                optimizer.step()
                optimizer.zero_grad()

    def _with_hook(self, state: Any, hook: Callable[..., Any], tolerance: float) -> None:
        wrapped = DistributedDataParallel(model().to(D))
        wrapped.register_comm_hook(state, hook)
        self._compare(self._train(wrapped), tolerance)

    def ddp_with_the_allreduce_hook(self) -> None:
        self._with_hook(None, default_hooks.allreduce_hook, 1e-4)

    def ddp_with_gradients_in_bfloat16(self) -> None:
        # PyTorch takes its own function of that kind, which it knows by name, for NCCL alone.
        def in_bfloat16(group, bucket):
            return default_hooks.bf16_compress_hook(group, bucket)

        self._with_hook(None, in_bfloat16, 3e-2)

    def fsdp1(self) -> None:
        from torch.distributed.fsdp import FullyShardedDataParallel

        wrapped = FullyShardedDataParallel(
            model().to(D), device_id=torch.device(D, 0), use_orig_params=True
        )
        self._compare(self._train(wrapped))

    def _sharded(self, **options: Any) -> nn.Module:
        from torch.distributed.fsdp import fully_shard

        trained = model() if "offload_policy" in options else model().to(D)
        for block in trained.blocks:
            fully_shard(block, mesh=self.mesh, **options)
        return fully_shard(trained, mesh=self.mesh, **options)

    def fsdp2(self) -> None:
        self._compare(self._train(self._sharded()))

    def fsdp2_in_mixed_precision(self) -> None:
        from torch.distributed.fsdp import MixedPrecisionPolicy

        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        self._compare(self._train(self._sharded(mp_policy=policy)), 5e-2)

    def fsdp2_with_parameters_on_the_cpu(self) -> None:
        from torch.distributed.fsdp import CPUOffloadPolicy

        self._compare(self._train(self._sharded(offload_policy=CPUOffloadPolicy())))

    def dtensors_compute_like_tensors(self) -> None:
        from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

        torch.manual_seed(0)
        a, b = torch.randn(8, 12), torch.randn(12, 4)
        rows = distribute_tensor(a.to(D), self.mesh, [Shard(0)])
        whole = distribute_tensor(b.to(D), self.mesh, [Replicate()])
        assert_close((rows @ whole).full_tensor().cpu(), a @ b)
        columns = rows.redistribute(self.mesh, [Shard(1)])
        split = distribute_tensor(b.to(D), self.mesh, [Shard(0)])
        partial = columns @ split
        assert partial.placements == (Partial(),)
        assert_close(partial.full_tensor().cpu(), a @ b)
        assert_close(columns.sum().full_tensor().cpu(), a.sum(), rtol=1e-4, atol=1e-4)

    def tensor_parallel(self) -> None:
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            RowwiseParallel,
            parallelize_module,
        )

        trained = model().to(D)
        plan = {"q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(),
                "o": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}  # fmt: skip
        for block in trained.blocks:
            parallelize_module(block, self.mesh, plan)
        self._compare(self._train(trained, shared=False))

    def pipeline_parallel(self) -> None:
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        whole = model()
        parts = [whole.embed, *whole.blocks, whole.head]
        each = len(parts) // self.size  # as many stages as ranks
        stage = nn.Sequential(*parts[self.rank * each : (self.rank + 1) * each]).to(D)
        pipe = PipelineStage(stage, self.rank, self.size, torch.device(D, 0))
        schedule = ScheduleGPipe(pipe, n_microbatches=2, loss_fn=loss_of)
        optimizer = optimizer_of(stage.parameters())
        first, last = self.rank == 0, self.rank == self.size - 1
        losses = []
        for _ in range(STEPS):
            tokens, wanted = batch()
            found: list[torch.Tensor] = []
            schedule.step(*([tokens] if first else []), **(
                {"target": wanted, "losses": found} if last else {}))  # fmt: skip
            if last:
                losses.append(torch.stack([part.detach() for part in found]).mean().item())
            optimizer.step()
            optimizer.zero_grad()
        if last:
            self._compare(losses)

    def ddp_with_power_sgd(self) -> None:
        state = powerSGD_hook.PowerSGDState(
            None,
            matrix_approximation_rank=4,
            start_powerSGD_iter=2,
            orthogonalization_epsilon=1e-6,
        )
        wrapped = DistributedDataParallel(model().to(D))
        wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        losses = self._train(wrapped)
        assert losses[-1] < losses[0]

    def a_checkpoint_is_saved(self) -> None:
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_state_dict

        trained = self._sharded()
        optimizer = optimizer_of(trained.parameters())
        tokens, wanted = self._share()
        loss_of(trained(tokens), wanted).backward()
        optimizer.step()
        weights, moments = get_state_dict(trained, optimizer)
        dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=self.folder)


def reload(rank: int, size: int, folder: str) -> list[float]:
    """Loads what any number of ranks saved; the losses of the steps that follow."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    warnings.simplefilter("ignore")
    dist.init_process_group(timeout=TIMEOUT)
    mine = Training(rank, size, folder)
    trained = mine._sharded()
    optimizer = optimizer_of(trained.parameters())
    weights, moments = get_state_dict(trained, optimizer)
    dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    set_state_dict(trained, optimizer, model_state_dict=weights, optim_state_dict=moments)
    losses = []
    for _ in range(1, STEPS):
        tokens, wanted = mine._share()
        loss = loss_of(trained(tokens), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mine._mean(loss))
    return losses


NAMES = [name for name in vars(Training) if not name.startswith("_")]


def train_all(rank: int, size: int, folder: str) -> dict[str, str | None]:
    warnings.simplefilter("ignore")
    dist.init_process_group(timeout=TIMEOUT)
    mine = Training(rank, size, folder)
    return outcomes({name: getattr(mine, name) for name in NAMES})
