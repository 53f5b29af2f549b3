"""botorch: a fitted process and the expected improvement at given points, in float64."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood


def use(device):
    x = torch.rand(12, 2, dtype=torch.float64).to(device)
    y = (x - 0.4).square().sum(1, keepdim=True).neg()
    model = SingleTaskGP(x, y)
    fit_gpytorch_mll(
        ExactMarginalLogLikelihood(model.likelihood, model),
        optimizer_kwargs={"options": {"maxiter": 5}},
    )
    points = torch.rand(5, 1, 2, dtype=torch.float64).to(device).requires_grad_()
    gain = LogExpectedImprovement(model, best_f=y.max())(points)
    gain.sum().backward()
    return {"gain": gain, "gradient": points.grad, "mean": model.posterior(points).mean}
