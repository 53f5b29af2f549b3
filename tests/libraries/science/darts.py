"""darts: an N-BEATS model fits a series for two epochs and forecasts."""

import numpy
import torch
from darts import TimeSeries
from darts.models import NBEATSModel

from torch_graft import integrations

integrations.enable("pytorch_lightning")


def use(device):
    series = TimeSeries.from_values(numpy.sin(numpy.arange(80, dtype="float32") / 5))
    model = NBEATSModel(
        12, 4, n_epochs=2, num_stacks=2, num_blocks=1, num_layers=2, layer_widths=16, random_state=0, batch_size=8,
        optimizer_cls=torch.optim.SGD, optimizer_kwargs={"lr": 0.01},
        pl_trainer_kwargs={"accelerator": device, "devices": 1, "enable_progress_bar": False, "logger": False},
    )  # fmt: skip
    model.fit(series)
    return {"forecast": torch.from_numpy(model.predict(6).values().copy())}
