"""pyro-ppl: the evidence bound of a model whose guide is a point, for three steps."""

import pyro
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDelta


def use(device):
    x, y = torch.randn(16, 3).to(device), torch.randn(16).to(device)

    def model():
        weights = pyro.sample(
            "weights", pyro.distributions.Normal(torch.zeros(3, device=device), 1).to_event(1)
        )
        with pyro.plate("rows", 16):
            pyro.sample("y", pyro.distributions.StudentT(4.0, x @ weights, 0.5), obs=y)

    guide = AutoDelta(model, init_loc_fn=lambda site: torch.ones(3, device=device))
    steps = SVI(model, guide, pyro.optim.SGD({"lr": 0.01}), Trace_ELBO())
    losses = [steps.step() for _ in range(3)]
    return {"losses": losses, "found": guide.median()}
