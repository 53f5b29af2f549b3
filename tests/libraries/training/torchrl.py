"""torchrl: a loss of PPO over a replayed batch, with generalized advantages."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


def use(device):
    net = TensorDictModule(torch.nn.Linear(4, 3), ["observation"], ["logits"])
    actor = ProbabilisticActor(net, in_keys=["logits"], distribution_class=torch.distributions.Categorical,
                               return_log_prob=True).to(device)  # fmt: skip
    value = ValueOperator(torch.nn.Linear(4, 1), ["observation"]).to(device)
    ends = torch.zeros(8, 1, dtype=torch.bool)
    rows = TensorDict({
        "observation": torch.randn(8, 4), "action": torch.randint(3, (8,)), "action_log_prob": torch.full((8,), -1.1),
        "next": {"observation": torch.randn(8, 4), "reward": torch.randn(8, 1), "done": ends, "terminated": ends},
    }, [8])  # fmt: skip
    kept = ReplayBuffer(storage=LazyTensorStorage(8, device=device))
    kept.extend(rows.to(device))
    batch = GAE(gamma=0.9, lmbda=0.8, value_network=value)(kept[:].unsqueeze(0)).squeeze(0)
    losses = ClipPPOLoss(actor, value)(batch)
    (losses["loss_objective"] + losses["loss_critic"]).backward()
    return {
        "advantage": batch["advantage"],
        "losses": [losses["loss_objective"], losses["loss_critic"]],
    }
