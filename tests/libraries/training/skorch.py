"""skorch: a classifier fits and predicts as in scikit-learn."""

import numpy
import torch
from skorch import NeuralNetClassifier


def use(device):
    x = numpy.random.default_rng(0).standard_normal((32, 6)).astype("float32")
    y = (x.sum(1) > 0).astype("int64")
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)), max_epochs=3, lr=0.1,
        criterion=torch.nn.CrossEntropyLoss, device=device, verbose=0, train_split=None, batch_size=8,
    )  # fmt: skip
    net.fit(x, y)
    return {
        "chances": torch.from_numpy(net.predict_proba(x)),
        "weights": dict(net.module_.state_dict()),
    }
