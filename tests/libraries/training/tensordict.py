"""tensordict: a dict of tensors is indexed, stacked, moved and given to a module."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential


def use(device):
    rows = TensorDict({"x": torch.randn(6, 4), "more": {"y": torch.arange(6)}}, [6]).to(device)
    both = torch.stack([rows[:3], rows[3:]]).reshape(-1)
    chain = TensorDictSequential(
        TensorDictModule(torch.nn.Linear(4, 5), ["x"], ["hidden"]),
        TensorDictModule(torch.tanh, ["hidden"], ["out"]),
    ).to(device)
    found = chain(both)
    found["out"].sum().backward()
    return {"out": found["out"], "y": found["more", "y"], "norm": (rows * 2)["x"].norm(),
            "gradients": [one.grad for one in chain.parameters()]}  # fmt: skip
