"""accelerate: prepare(), accumulated gradients and clipping over two steps."""

import torch
from accelerate import Accelerator

from torch_graft import integrations

integrations.enable("accelerate")


def use(device):
    helper = Accelerator(cpu=device == "cpu", gradient_accumulation_steps=2)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    rows = torch.utils.data.TensorDataset(torch.randn(16, 6), torch.arange(16) % 2)
    loader = torch.utils.data.DataLoader(rows, batch_size=4)
    steps = torch.optim.AdamW(model.parameters(), 0.01)
    model, steps, loader = helper.prepare(model, steps, loader)
    losses = []
    for x, y in loader:
        with helper.accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            helper.backward(loss)
            if helper.sync_gradients:
                helper.clip_grad_norm_(model.parameters(), 0.5)
            steps.step()
            steps.zero_grad()
            losses.append(helper.gather(loss.detach()))
    return {"losses": losses, "weights": dict(model.state_dict())}
