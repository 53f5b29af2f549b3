"""Fine-tunes a tiny BERT, made from a configuration, with transformers' Trainer."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)


class Sentences(Dataset):
    """Sequences of tokens; the label says whether the first one is of the upper half."""

    def __init__(self, count: int, seed: int) -> None:
        self.tokens = torch.randint(
            8, 60, (count, 8), generator=torch.Generator().manual_seed(seed)
        )
        self.labels = (self.tokens[:, 0] >= 34).long()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = self.tokens[index]
        mask = torch.ones_like(tokens)
        mask[6 + index % 2 :] = 0
        return {"input_ids": tokens, "attention_mask": mask, "labels": self.labels[index]}


class Losses(TrainerCallback):
    def __init__(self) -> None:
        self.values: list[float] = []

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs:
            self.values.append(float(logs["loss"]))


set_seed(3)
config = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, max_position_embeddings=16, num_labels=2,
)  # fmt: skip
model = BertForSequenceClassification(config)
curve = Losses()
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=folder, per_device_train_batch_size=32, num_train_epochs=6,
            learning_rate=5e-3, logging_steps=8, save_strategy="epoch", save_total_limit=1,
            eval_strategy="epoch", report_to="none", disable_tqdm=True, max_grad_norm=1.0,
        ),
        train_dataset=Sentences(256, 1),
        eval_dataset=Sentences(64, 2),
        callbacks=[curve],
        compute_metrics=lambda p: {"accuracy": float((p[0].argmax(1) == p[1]).mean())},
    )  # fmt: skip
    trainer.train()
    accuracy = trainer.evaluate()["eval_accuracy"]
optimizer, losses = trainer.optimizer, curve.values
