"""segmentation-models-pytorch: a Unet over a ResNet trains for a step with the Dice loss."""

import segmentation_models_pytorch as models
import torch


def use(device):
    model = models.Unet(
        "resnet18", encoder_weights=None, classes=3, decoder_channels=(64, 32, 16, 8, 8)
    ).to(device)
    images, wanted = torch.randn(2, 3, 64, 64).to(device), torch.randint(3, (2, 64, 64)).to(device)
    found = model(images)
    loss = models.losses.DiceLoss("multiclass")(found, wanted)
    loss.backward()
    counts = models.metrics.get_stats(found.argmax(1), wanted, mode="multiclass", num_classes=3)
    return {"loss": loss, "counts": counts, "gradients": [one.grad for one in model.parameters()]}
