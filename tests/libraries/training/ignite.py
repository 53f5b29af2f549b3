"""pytorch-ignite: a supervised trainer and an evaluator with its metrics."""

import torch
from ignite.engine import create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss


def use(device):
    rows = torch.utils.data.TensorDataset(torch.randn(16, 6), torch.arange(16) % 2)
    loader = torch.utils.data.DataLoader(rows, batch_size=4)
    model, loss = torch.nn.Linear(6, 2).to(device), torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(
        model, torch.optim.SGD(model.parameters(), 0.1), loss, device=device
    )
    trainer.run(loader, max_epochs=2)
    measured = {"accuracy": Accuracy(device=device), "loss": Loss(loss, device=device)}
    judge = create_supervised_evaluator(model, measured, device=device)
    judge.run(loader)
    return {"metrics": dict(judge.state.metrics), "weights": dict(model.state_dict())}
