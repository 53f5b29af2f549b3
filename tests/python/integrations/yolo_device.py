"""Predicts and trains with ultralytics on the device and on the CPU, in an empty folder.

With WHOLE in the environment torchvision's operators load: boxes are suppressed, and the training validates.
"""

import json
import os
from contextlib import suppress

import torch
from PIL import Image
from ultralytics import YOLO
from ultralytics.utils import torch_utils

from torch_graft import integrations

D, WHOLE = os.environ["DEVICE"], os.environ.get("WHOLE")
integrations.enable("ultralytics")
STILL = ("mosaic", "fliplr", "scale", "translate", "hsv_h", "hsv_s", "hsv_v", "warmup_epochs")


class Done(Exception):
    pass


def write_images() -> None:
    for part in ("images", "labels"):
        os.mkdir(part)
    for i in range(4):
        Image.effect_noise((64, 64), 50 + 20 * i).convert("RGB").save(f"images/{i}.png")
        with open(f"labels/{i}.txt", "w") as file:
            file.write("0 0.5 0.5 0.4 0.4")
    here = {"path": os.getcwd(), "train": "images", "val": "images", "names": ["thing"]}
    with open("data.yaml", "w") as file:
        json.dump(here, file)


def losses(place):
    """The losses of two steps, what validations found, and the trainer's device and whether its precision is mixed."""
    torch.manual_seed(0)
    model, found = YOLO("yolo26n.yaml"), []

    def end(trainer):
        found.append((trainer.device, trainer.amp))
        if not WHOLE:  # before the validation, whose kernel of torchvision does not load here
            raise Done

    model.add_callback("on_train_batch_end", lambda trainer: found.append(dict(trainer.loss_items)))
    model.add_callback("on_fit_epoch_end", lambda trainer: found.append(numbers(trainer.metrics)))
    model.add_callback("on_train_end" if WHOLE else "on_train_epoch_end", end)
    with suppress(Done):
        model.train(
            data="data.yaml", epochs=1, imgsz=64, batch=2, device=place, workers=0, optimizer="SGD", lr0=0.001,
            plots=False, project=os.getcwd(), **dict.fromkeys(STILL, 0.0),
        )  # fmt: skip
    assert isinstance(found[-1], tuple), found
    return found


def numbers(metrics):
    return {name: torch.as_tensor(value) for name, value in metrics.items()}


def suppressed(place):
    """The boxes that YOLO11 finds, of which torchvision's operator drops most."""
    torch.manual_seed(0)
    [answer] = YOLO("yolo11n.yaml").predict(
        "images/0.png", device=place, verbose=False, imgsz=64, conf=1e-6, iou=0.3, max_det=20
    )
    return answer.boxes.data.cpu()


assert torch_utils.select_device(D + ":1", verbose=False) == torch.device(D, 1)
assert torch_utils.select_device(torch.device(D), verbose=False).type == D
assert torch_utils.select_device("cpu", verbose=False).type == "cpu"
write_images()
module = torch.get_device_module(D)

# Before the training, which imports torchvision.
model = YOLO("yolo26n.yaml")
[answer] = model.predict("images/0.png", device=D, verbose=False, imgsz=64, nms=False, conf=0.0)
assert model.predictor.device == answer.boxes.data.device == torch.device(D, 0)
assert not module.fallback.counts(), module.fallback.counts()

*found, how = losses(D)
assert how == (torch.device(D, 0), False), how
assert not module.fallback.counts(), module.fallback.counts()
*wanted, _ = losses("cpu")
assert len(found) == len(wanted) == (4 if WHOLE else 2), (found, wanted)
for one, other in zip(found, wanted, strict=True):
    here = {key: value.cpu() for key, value in one.items()}
    torch.testing.assert_close(here, other, rtol=1e-2, atol=1e-3)

if WHOLE:
    boxes = suppressed(D)
    assert len(boxes) > 1, boxes
    assert not module.fallback.counts(), module.fallback.counts()
    torch.testing.assert_close(boxes, suppressed("cpu"), rtol=1e-3, atol=1e-3)

integrations.disable("ultralytics")
try:
    refused = f"{torch_utils.select_device(D, verbose=False)} was taken"
except ValueError as error:
    refused = str(error)
assert "Invalid CUDA" in refused, refused
