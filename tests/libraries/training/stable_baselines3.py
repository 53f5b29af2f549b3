"""stable-baselines3: PPO's policy judges observations and trains on given rollouts."""

import gymnasium
import numpy
import torch
from stable_baselines3 import PPO


def use(device):
    model = PPO(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        device=device,
        seed=0,
        n_steps=32,
        batch_size=32,
        n_epochs=1,
    )
    seen = numpy.random.default_rng(0).standard_normal((5, 4)).astype("float32")
    chosen, _ = model.predict(seen, deterministic=True)
    given, acts = torch.from_numpy(seen).to(device), torch.tensor([0, 1, 1, 0, 1]).to(device)
    values, chances, entropy = model.policy.evaluate_actions(given, acts)
    loss = values.square().mean() - chances.mean() - 0.01 * entropy.mean()
    model.policy.optimizer.zero_grad()
    loss.backward()
    model.policy.optimizer.step()
    return {
        "chosen": torch.from_numpy(chosen),
        "values": values,
        "chances": chances,
        "weights": dict(model.policy.state_dict()),
    }
