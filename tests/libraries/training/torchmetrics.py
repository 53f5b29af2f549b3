"""torchmetrics: metrics of classes, regression and images over two batches."""

import torch
from torchmetrics import MeanSquaredError, MetricCollection, PearsonCorrCoef
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)  # fmt: skip
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure


def use(device):
    kinds = MetricCollection(
        [
            MulticlassAccuracy(4),
            MulticlassF1Score(4),
            MulticlassAUROC(4),
            MulticlassConfusionMatrix(4),
        ]
    )
    lines = MetricCollection([MeanSquaredError(), PearsonCorrCoef()])
    images = MetricCollection(
        [PeakSignalNoiseRatio(data_range=1.0), StructuralSimilarityIndexMeasure(data_range=1.0)]
    )
    for one in (kinds, lines, images):
        one.to(device)
    for _ in range(2):
        kinds.update(torch.randn(16, 4).softmax(1).to(device), torch.randint(4, (16,)).to(device))
        lines.update(torch.randn(16).to(device), torch.randn(16).to(device))
        images.update(torch.rand(2, 3, 24, 24).to(device), torch.rand(2, 3, 24, 24).to(device))
    return [kinds.compute(), lines.compute(), images.compute()]
