"""mosaicml: composer's Trainer fits a classifier for an epoch."""

import torch
from composer import Trainer
from composer.models import ComposerClassifier


def use(device):
    rows = torch.utils.data.TensorDataset(torch.randn(16, 6), torch.arange(16) % 2)
    model = ComposerClassifier(torch.nn.Linear(6, 2), num_classes=2)
    trainer = Trainer(model=model, train_dataloader=torch.utils.data.DataLoader(rows, 4), max_duration="1ep", device=device,
                      optimizers=torch.optim.SGD(model.parameters(), 0.1), progress_bar=False)  # fmt: skip
    trainer.fit()
    return dict(model.state_dict())
