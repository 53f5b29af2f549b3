"""Attention that a model writes out becomes one call of the kernel, with eager's results."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torch_graft
from torch_graft.compiler import capture

pytestmark = pytest.mark.one_mode

BATCH, HEADS, ROWS, DEPTH = 2, 3, 12, 8
ATTENTION = "aten._scaled_dot_product_fused_attention_overrideable"
Mask = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def added(scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """As BERT hides what lies behind a sentence's end."""
    ends = torch.arange(ROWS, device=scores.device)[None, :] >= lengths[:, None]
    return scores + ends[:, None, None, :] * -10000.0


def filled(scores: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    """As small GPTs hide what comes later."""
    later = torch.ones(ROWS, ROWS, dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(later, -math.inf)


def chosen(scores: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    seen = torch.ones(ROWS, ROWS, dtype=torch.bool, device=scores.device).tril()
    return torch.where(seen.logical_not(), -math.inf, scores)


MASKS: dict[str, Mask] = {"none": lambda scores, _: scores, "added": added, "filled": filled,
                          "chosen": chosen}  # fmt: skip


class Written(nn.Module):
    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self.mask = mask
        self.join, self.out = nn.Linear(24, 3 * 24), nn.Linear(24, 24)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        parts = self.join(x).chunk(3, -1)
        q, k, v = (one.view(BATCH, ROWS, HEADS, DEPTH).transpose(1, 2) for one in parts)
        scores = self.mask(q @ k.transpose(-2, -1) / math.sqrt(DEPTH), lengths)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def inputs(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randn(BATCH, ROWS, 24).to(device), torch.tensor([ROWS, 5]).to(device)


@pytest.mark.parametrize("mask", MASKS)
def test_written_attention_is_the_kernels(mask: str, device: str) -> None:
    model, given = Written(MASKS[mask]).to(device).eval(), inputs(device)
    assert ATTENTION in capture(model, *given).optimized().forward
    made = torch_graft.optimize(model, *given)
    with torch.no_grad():
        for _ in range(3):
            assert_close(made(*given), model(*given))


def test_training_keeps_the_products(device: str) -> None:
    captured = capture(Written(added).to(device), *inputs(device), training=True)
    assert ATTENTION not in captured.optimized().forward


def test_half_types_keep_the_products(device: str) -> None:
    model = Written(MASKS["none"]).to(device).eval().bfloat16()
    x, lengths = inputs(device)
    assert ATTENTION not in capture(model, x.bfloat16(), lengths).optimized().forward


def test_a_row_that_sees_nothing_gives_zeros(device: str) -> None:
    def nothing(scores: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return scores.masked_fill(torch.arange(ROWS, device=device)[:, None] == 4, -math.inf)

    model, given = Written(nothing).to(device).eval(), inputs(device)
    model.out = nn.Identity()
    with torch.no_grad():
        made, eager = torch_graft.optimize(model, *given)(*given), model(*given)
    rest = [row for row in range(ROWS) if row != 4]
    assert made[:, 4].eq(0).all()
    assert eager[:, 4].isnan().all()
    assert_close(made[:, rest], eager[:, rest])
