"""monai: a UNet of volumes trains for a step with the Dice loss, and looks at a volume in windows."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.networks.nets import UNet


def use(device):
    model = UNet(3, 1, 2, (8, 16, 32), (2, 2), num_res_units=1).to(device)
    volume = torch.randn(1, 1, 16, 16, 16).to(device)
    wanted = (torch.rand(1, 1, 16, 16, 16) > 0.5).float().to(device)
    loss = DiceCELoss(to_onehot_y=True, softmax=True)(model(volume), wanted)
    loss.backward()
    with torch.no_grad():
        seen = sliding_window_inference(
            torch.randn(1, 1, 24, 16, 16).to(device), (16, 16, 16), 2, model
        )
    return {"loss": loss, "seen": seen, "gradients": [one.grad for one in model.parameters()]}
