"""tianshou: a network for Q values answers for a batch, with gradients."""

import numpy
from tianshou.data import Batch
from tianshou.utils.net.common import Net


def use(device):
    net = Net(state_shape=(4,), action_shape=(3,), hidden_sizes=[16, 16]).to(device)
    batch = Batch(obs=numpy.random.default_rng(0).standard_normal((6, 4)).astype("float32"))
    batch.to_torch_(device=device)
    found, _ = net(batch.obs)
    found.max(1).values.sum().backward()
    return {"values": found, "gradients": [one.grad for one in net.parameters()]}
