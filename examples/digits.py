"""Trains a small CNN on scikit-learn's bundled handwritten digits, saves, re-loads and draws it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from record import Record, Side, metered, side_options

GOAL, BATCH, EPOCHS = 0.97, 64, 12


class Net(nn.Module):
    """Two convolutions with batch norm and pooling, two linear layers with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, 10)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images))


def load() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns train images [N,1,8,8] in 0..1, train labels, test images, test labels."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    images = (data.images / 16).astype("float32")[:, None]
    parts = train_test_split(images, data.target, test_size=0.2, random_state=0,
                             stratify=data.target)  # fmt: skip
    train_x, test_x, train_y, test_y = map(torch.as_tensor, parts)
    return train_x, train_y, test_x, test_y


def logits_of(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    model.eval()
    with torch.inference_mode():
        return model(images)


def correct(logits: torch.Tensor, labels: torch.Tensor) -> int:
    return int((logits.argmax(1) == labels).sum())


def steps(
    model: nn.Module, device: str, images: torch.Tensor, labels: torch.Tensor,
    epochs: int, seed: int, progress: bool,
) -> torch.Tensor:  # fmt: skip
    """Trains for some epochs; returns the loss of every step, on the CPU."""
    model.train()
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    per_epoch = len(images) // BATCH
    curve = torch.empty(epochs * per_epoch, device=device)
    with tqdm(total=len(curve), desc=f"{device} seed {seed}", disable=not progress) as bar:
        for epoch in range(epochs):
            shuffled = torch.randperm(len(images), generator=order)
            for i in range(per_epoch):
                rows = shuffled[i * BATCH : (i + 1) * BATCH]
                x, y = images[rows].to(device), labels[rows].to(device)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                curve[epoch * per_epoch + i].copy_(loss.detach())
            bar.update(per_epoch)
    return curve.cpu()


def train(device: str, seed: int, epochs: int, checkpoint: str, progress: bool) -> dict[str, Any]:
    """Trains from a seed, saves to `checkpoint`, re-loads it and tests; returns the figures."""
    train_x, train_y, test_x, test_y = load()
    torch.manual_seed(seed)
    with metered(device) as first:
        steps(Net().to(device), device, train_x[:BATCH], train_y[:BATCH], 1, seed, False)
    torch.manual_seed(seed)
    model = Net().to(device)
    with metered(device) as meter:
        curve = steps(model, device, train_x, train_y, epochs, seed, progress)
    test_x, test_y = test_x.to(device), test_y.to(device)
    logits = logits_of(model, test_x)
    torch.save(model.state_dict(), checkpoint)
    again = Net().to(device)
    again.load_state_dict(torch.load(checkpoint, map_location=device, weights_only=True))
    right, right_again = correct(logits, test_y), correct(logits_of(again, test_x), test_y)
    return {
        "seed": seed, "accuracy": right / len(test_y), "reloaded": right_again / len(test_y),
        "logits": logits.cpu().numpy(), "curve": curve.numpy(), "meter": meter,
        "first": first.seconds,
    }  # fmt: skip


def moved(device: str, checkpoint: str) -> Any:
    """Logits of a checkpoint, wherever it was saved, re-loaded on this device."""
    model = Net().to(device)
    model.load_state_dict(torch.load(checkpoint, map_location=device, weights_only=True))
    return logits_of(model, load()[2].to(device)).cpu().numpy()


def draw(path: Path, runs: list[dict[str, Any]]) -> None:
    """Writes a PNG: the loss curve of each run, and predictions of the first."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(11, 4))
    left, right = figure.subfigures(1, 2)
    axis = left.subplots()
    for run in runs:
        axis.semilogy(run["curve"], label=f"seed {run['seed']}", linewidth=0.8)
    axis.set(xlabel="step", ylabel="loss")
    axis.legend()
    _, _, images, labels = load()
    for i, cell in enumerate(right.subplots(4, 6).flat):
        guess = int(runs[0]["logits"][i].argmax())
        cell.imshow(images[i, 0], cmap="gray_r")
        cell.set_title(str(guess), color="green" if guess == int(labels[i]) else "red", pad=2)
        cell.axis("off")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def run(
    device: str, against: str, out: Path, seeds: tuple[int, ...] = (0, 1, 2), epochs: int = EPOCHS
) -> Record:
    """Trains from every seed on both devices in turn; writes checkpoints and digits.png to out."""
    out.mkdir(parents=True, exist_ok=True)
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    with Side(against) as peer, Side(device) as side:
        for seed in seeds:
            theirs.append(peer.call(train, seed, epochs, str(out / "peer.pt"), False))
            ours.append(side.call(train, seed, epochs, str(out / f"digits{seed}.pt"), True))
        drift = abs(peer.call(moved, str(out / f"digits{seeds[-1]}.pt")) - ours[-1]["logits"]).max()
    draw(out / "digits.png", ours)
    fallbacks = dict(sum((Counter(r["meter"].fallbacks) for r in ours), Counter()))
    worst = min(r["accuracy"] for r in ours)
    seconds, other = (median(r["meter"].seconds for r in side) for side in (ours, theirs))
    return Record(
        "(a) digits",
        "accuracy " + " ".join(f"{r['accuracy']:.2%}" for r in ours)
        + f", first batch {ours[0]['first']:.2f} s",
        seconds, other, sum(r["meter"].native for r in ours), fallbacks,
        max(r["meter"].peak for r in ours),
        {
            f"worst accuracy {worst:.2%} >= {GOAL:.0%} from seeds {seeds}": worst >= GOAL,
            "re-loaded checkpoints are as accurate": all(
                r["accuracy"] == r["reloaded"] for r in ours
            ),
            f"checkpoint gives the same logits on {against} (off by {drift:.1e})": drift < 1e-3,
            "loss fell": all(r["curve"][-10:].mean() < r["curve"][:10].mean() / 5 for r in ours),
            "training had no fallback": not fallbacks,
        },
        tuple(r["accuracy"] for r in ours),
    )  # fmt: skip


def main() -> int:
    parser = side_options(__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    options = parser.parse_args()
    record = run(options.device, options.against, options.out)
    print(*record.lines(), f"  {record.seconds:.2f} s, {options.against} {record.against:.2f} s",
          sep="\n")  # fmt: skip
    return 0 if record.ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
