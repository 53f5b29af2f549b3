"""ultralytics: YOLO finds things in an image, without suppression."""

import numpy
from ultralytics import YOLO

from torch_graft import integrations

integrations.enable("ultralytics")


def use(device):
    model = YOLO("yolo26n.yaml")
    image = numpy.random.default_rng(0).integers(0, 256, (64, 64, 3), numpy.uint8)
    [found] = model.predict(
        image, device=device, verbose=False, imgsz=64, nms=False, conf=0.0, save=False
    )
    boxes = found.boxes.data
    # Equal scores have no order.
    return {"boxes": boxes[:, :5], "classes": boxes[:, 5].sort().values}
