"""fastai: a Learner fits one cycle."""

import torch
from fastai.basics import CrossEntropyLossFlat, DataLoader, DataLoaders, Learner
from fastai.callback.progress import ProgressCallback
from fastai.callback.schedule import ParamScheduler, SchedCos


def use(device):
    x = torch.randn(16, 6)
    rows = [(one, i % 2) for i, one in enumerate(x)]
    loaders = DataLoaders(
        DataLoader(rows, bs=4), DataLoader(rows, bs=4), device=torch.device(device)
    )
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(
        device
    )
    learner = Learner(loaders, model, loss_func=CrossEntropyLossFlat(), lr=0.01)
    learner.remove_cbs(ProgressCallback)
    with learner.no_logging():
        learner.fit(2, cbs=ParamScheduler({"lr": SchedCos(0.01, 0.001)}))
    return {"loss": learner.validate()[0], "weights": dict(model.state_dict())}
