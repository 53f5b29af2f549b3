"""Trains with transformers' Trainer as a user writes it; each rank reports its gradients."""

import sys
import tempfile

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

import joined_batch


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network = joined_batch.network()

    def forward(self, x, labels):
        logits = self.network(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Gradients(TrainerCallback):
    def __init__(self) -> None:
        self.values: list[list[float]] = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        self.values.append(joined_batch.numbers(p.grad for p in model.parameters()))


class InOrder(Trainer):
    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(self.train_dataset)


seen = Gradients()
with tempfile.TemporaryDirectory() as folder:
    trainer = InOrder(
        model=Classifier(), callbacks=[seen], train_dataset=joined_batch.Rows(as_tuple=False),
        args=TrainingArguments(
            output_dir=folder, per_device_train_batch_size=int(sys.argv[1]), num_train_epochs=1, optim="sgd",
            learning_rate=joined_batch.RATE, lr_scheduler_type="constant", max_grad_norm=0, weight_decay=0,
            report_to="none", disable_tqdm=True, save_strategy="no", remove_unused_columns=False,
            **dict.fromkeys(sys.argv[2:], True),
        ),
    )  # fmt: skip
    trainer.train()
joined_batch.report(
    trainer.args.device, ranks=trainer.args.world_size, gradients=seen.values,
    parameters=joined_batch.numbers(trainer.model.parameters()), held=joined_batch.held(trainer.model),
    mixed=trainer.accelerator.mixed_precision,
)  # fmt: skip
