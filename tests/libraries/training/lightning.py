"""lightning: the Trainer fits and validates a module for an epoch."""

import torch
from lightning import LightningModule, Trainer

from torch_graft import integrations

integrations.enable("lightning")


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
        )

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("loss", self.training_step(batch, _))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def use(device):
    rows = torch.utils.data.TensorDataset(torch.randn(16, 6), torch.arange(16) % 2)
    loader = torch.utils.data.DataLoader(rows, batch_size=4)
    model = Net()
    trainer = Trainer(accelerator=device, devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False)  # fmt: skip
    trainer.fit(model, loader, loader)
    return {"loss": trainer.callback_metrics["loss"], "weights": dict(model.state_dict())}
