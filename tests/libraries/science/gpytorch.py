"""gpytorch: an exact Gaussian process learns for three steps and predicts."""

import gpytorch
import torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean, self.kernel = (
            gpytorch.means.ConstantMean(),
            gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()),
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def use(device):
    x = torch.linspace(0, 1, 20).to(device)
    y = torch.sin(6 * x)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    model = Model(x, y, likelihood).to(device)
    goal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    steps, losses = torch.optim.SGD(model.parameters(), 0.05), []
    for _ in range(3):
        steps.zero_grad()
        loss = -goal(model(x), y)
        loss.backward()
        steps.step()
        losses.append(loss)
    model.eval()
    with torch.no_grad():
        found = likelihood.eval()(model(torch.linspace(0, 1, 7).to(device)))
        return {"losses": losses, "mean": found.mean, "variance": found.variance}
