"""Trains with Lightning's Trainer, or Fabric, as a user writes it; each rank reports its gradients."""

import importlib
import json
import sys
import warnings

import torch
from torch.utils.data import DataLoader, DistributedSampler

import joined_batch

warnings.simplefilter("ignore")
choice = json.loads(sys.argv[1])
if choice.pop("imported", False):
    importlib.import_module(f"torch_graft.integrations.{choice.get('package', 'lightning')}")
batch, fabric, package = (
    choice.pop("batch"),
    choice.pop("fabric", False),
    choice.pop("package", "lightning"),
)
if package == "lightning":
    import lightning as pl
else:
    import pytorch_lightning as pl

rows, seen, dtypes = joined_batch.Rows(), [], set()


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = joined_batch.network()

    def training_step(self, pair, _):
        logits = self.network(pair[0])
        dtypes.add(str(logits.dtype))
        return torch.nn.functional.cross_entropy(logits, pair[1])

    def on_before_optimizer_step(self, _):
        seen.append(joined_batch.numbers(p.grad for p in self.parameters()))

    def configure_model(self) -> None:
        if self.device_mesh is not None and choice["strategy"] == "fsdp2":
            from torch.distributed.fsdp import fully_shard

            fully_shard(self.network, mesh=self.device_mesh["data_parallel"])

    def train_dataloader(self):
        """In order: the sampler that the Trainer would add shuffles."""
        sampler = DistributedSampler(rows, self.trainer.world_size, self.global_rank, shuffle=False)
        return DataLoader(rows, batch_size=batch, sampler=sampler)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=joined_batch.RATE)


def train_with_fabric():
    made = pl.Fabric(**choice)
    made.launch()
    model = joined_batch.network()
    model, optimizer = made.setup(model, torch.optim.SGD(model.parameters(), lr=joined_batch.RATE))
    for x, y in made.setup_dataloaders(DataLoader(rows, batch_size=batch)):
        logits = model(x)
        dtypes.add(
            str(model._original_module[0](x).dtype)
            if "mixed" in choice.get("precision", "")
            else ""
        )
        made.backward(torch.nn.functional.cross_entropy(logits, y))
        made.clip_gradients(model, optimizer, max_norm=1e6)  # unscales
        seen.append(joined_batch.numbers(p.grad for p in model.parameters()))
        optimizer.step()
        optimizer.zero_grad()
    return made.device, made.world_size, type(made.strategy).__name__, model


def train_with_trainer():
    given = dict(choice)
    if given.get("strategy") == "fsdp2":
        from lightning.pytorch.strategies import ModelParallelStrategy

        given["strategy"] = ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1)
    trainer = pl.Trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, use_distributed_sampler=False, **given,
    )  # fmt: skip
    net = Net()
    trainer.fit(net)
    return trainer.strategy.root_device, trainer.world_size, type(trainer.strategy).__name__, net


device, ranks, strategy, model = train_with_fabric() if fabric else train_with_trainer()
joined_batch.report(device, ranks=ranks, strategy=strategy, gradients=seen, dtypes=sorted(dtypes))
