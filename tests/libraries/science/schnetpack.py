"""schnetpack: SchNet's layers over a molecule, with forces."""

import schnetpack
import torch
from schnetpack import properties


def use(device):
    places = torch.randn(5, 3).to(device).requires_grad_()
    one, other = (part.to(device) for part in torch.where(~torch.eye(5, dtype=torch.bool)))
    given = {
        properties.Z: torch.tensor([1, 6, 8, 1, 1]).to(device), properties.idx_i: one, properties.idx_j: other,
        properties.Rij: places[other] - places[one], properties.idx_m: torch.zeros(5, dtype=torch.long).to(device),
        properties.n_atoms: torch.tensor([5]).to(device),
    }  # fmt: skip
    net = schnetpack.representation.SchNet(
        16, 2, schnetpack.nn.GaussianRBF(8, 5.0), schnetpack.nn.CosineCutoff(5.0)
    ).to(device)
    head = schnetpack.atomistic.Atomwise(n_in=16, output_key="energy").to(device)
    energy = head(net(given))["energy"]
    energy.sum().backward()
    return {"energy": energy, "forces": -places.grad}
