"""transformers: the Trainer trains a BERT for two steps."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from torch_graft import integrations

integrations.enable("transformers")


def use(device):
    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    words = torch.randint(64, (16, 12))
    rows = [{"input_ids": one, "labels": one[0] % 2} for one in words]
    arguments = TrainingArguments(
        tempfile.mkdtemp(), max_steps=2, per_device_train_batch_size=8, learning_rate=0.1, optim="sgd", report_to="none",
        use_cpu=device == "cpu", save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    loss = Trainer(model, arguments, train_dataset=rows).train().training_loss
    return {"loss": loss, "weights": dict(model.state_dict())}
