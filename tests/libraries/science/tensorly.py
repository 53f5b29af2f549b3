"""tensorly: CP and Tucker decompositions by its backend of PyTorch."""

import tensorly
import torch
from tensorly.decomposition import parafac, tucker


def use(device):
    tensorly.set_backend("pytorch")
    parts = [torch.rand(n, 2) for n in (5, 6, 7)]
    whole = torch.einsum("ir,jr,kr->ijk", *parts).to(device)
    cp = parafac(whole, rank=2, n_iter_max=20, init="svd")
    core = tucker(whole, rank=[2, 2, 2], n_iter_max=5)
    return {"cp": tensorly.cp_to_tensor(cp), "tucker": tensorly.tucker_to_tensor(core)}
