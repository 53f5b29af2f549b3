"""Compiled and optimized models on several ranks: the losses of one process that compiles nothing."""

from __future__ import annotations

import warnings
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import torch_graft
from collective_checks import TIMEOUT, outcomes
from parallel_training import D, Training, model
from torch_graft.compiler import reports, reset_reports


class Compiling(Training):
    def compiled_ddp(self) -> None:
        self._compare(self._train(torch.compile(DistributedDataParallel(model().to(D)))))
        self._all_compiled()

    def ddp_of_a_compiled_model(self) -> None:
        self._compare(self._train(DistributedDataParallel(torch.compile(model().to(D)))))
        self._all_compiled()

    def compiled_ddp_in_many_buckets(self) -> None:
        # Dynamo cuts the graph where a bucket of gradients is full.
        with patch.object(dist, "_DEFAULT_FIRST_BUCKET_BYTES", 2048):
            wrapped = DistributedDataParallel(model().to(D), bucket_cap_mb=0.004)
            self._compare(self._train(torch.compile(wrapped)))
        self._all_compiled(at_least=4)

    def ddp_of_an_optimized_model(self) -> None:
        made = torch_graft.optimize(model().to(D), mode="training")
        self._compare(self._train(DistributedDataParallel(made)))
        self._all_compiled()

    def compiled_fsdp2(self) -> None:
        self._compare(self._train(torch.compile(self._sharded())))
        self._all_compiled()

    def fsdp2_of_compiled_blocks(self) -> None:
        from torch.distributed.fsdp import fully_shard

        trained = model().to(D)
        for block in trained.blocks:
            block.compile()
            fully_shard(block, mesh=self.mesh)
        self._compare(self._train(fully_shard(trained, mesh=self.mesh)))
        self._all_compiled()

    def _all_compiled(self, at_least: int = 2) -> None:
        made = reports()
        assert len(made) >= at_least, made
        for one in made:
            assert one.compiled, one
            counts = one.counts()
            assert counts is None or not counts.eager, one
        torch._dynamo.reset()
        reset_reports()


NAMES = [name for name in vars(Compiling) if not name.startswith("_")]


def compile_all(rank: int, size: int, folder: str) -> dict[str, str | None]:
    warnings.simplefilter("ignore")
    dist.init_process_group(timeout=TIMEOUT)
    mine = Compiling(rank, size, folder)
    return outcomes({name: getattr(mine, name) for name in NAMES})
