"""datasets: rows in PyTorch's format through a DataLoader, and a step of training on each batch."""

import torch
from datasets import Dataset


def use(device):
    rows = Dataset.from_dict({"x": torch.randn(12, 6).tolist(), "y": [i % 3 for i in range(12)]})
    loader = torch.utils.data.DataLoader(rows.with_format("torch"), batch_size=4)
    model = torch.nn.Linear(6, 3).to(device)
    steps = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for batch in loader:
        loss = torch.nn.functional.cross_entropy(
            model(batch["x"].to(device)), batch["y"].to(device)
        )
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(loss)
    there = Dataset.from_dict({"x": [[1.0, 2.0]]}).with_format("torch", device=device)[0]["x"]
    return {"losses": losses, "weights": dict(model.state_dict()), "there": there}
