"""pytorch-forecasting: N-BEATS takes a batch of series, with its loss and gradients."""

import numpy
import pandas
from pytorch_forecasting import NBeats, TimeSeriesDataSet


def use(device):
    rows = pandas.DataFrame(
        {"time": numpy.arange(60), "series": "a", "value": numpy.sin(numpy.arange(60) / 5)}
    )
    series = TimeSeriesDataSet(
        rows, "time", "value", ["series"], max_encoder_length=12, max_prediction_length=4,
        time_varying_unknown_reals=["value"],
    )  # fmt: skip
    model = NBeats.from_dataset(
        series, widths=[16, 32], num_blocks=[1, 1], num_block_layers=[2, 2], dropout=0.0
    ).to(device)
    x, (y, _) = next(iter(series.to_dataloader(train=False, batch_size=8)))
    x = {name: one.to(device) if hasattr(one, "to") else one for name, one in x.items()}
    found = model(x)["prediction"]
    loss = (found.squeeze(-1) - y.to(device)).abs().mean()
    loss.backward()
    return {"found": found, "loss": loss}
