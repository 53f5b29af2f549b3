"""diffusers: a UNet learns noise for a step, and DDIM goes four steps back."""

import torch
from diffusers import DDIMScheduler, UNet2DModel


def use(device):
    model = UNet2DModel(
        sample_size=16, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ).to(device)  # fmt: skip
    schedule = DDIMScheduler(num_train_timesteps=100)
    image, noise = torch.randn(2, 3, 16, 16).to(device), torch.randn(2, 3, 16, 16).to(device)
    times = torch.tensor([10, 60]).to(device)
    loss = (model(schedule.add_noise(image, noise, times), times).sample - noise).square().mean()
    loss.backward()
    schedule.set_timesteps(4)
    with torch.no_grad():
        for time in schedule.timesteps:
            noise = schedule.step(model(noise, time).sample, time, noise).prev_sample
    return {"loss": loss, "image": noise, "gradients": [one.grad for one in model.parameters()]}
