"""What PyTorch composes for most devices, and fuses for those of its lists, is fused on ve, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves


def tokens(device: str, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.linspace(-1, 1, torch.Size(sizes).numel()).view(sizes).to(device, dtype)


def attention(device: str, **options: Any) -> torch.Tensor:
    q = tokens(device, 2, 3, 5, 4).requires_grad_()
    mask = options.pop("mask", None)
    if mask is not None:
        options["attn_mask"] = mask.to(device)
    result = F.scaled_dot_product_attention(q, q * 2, q + 1, **options)
    (gradient,) = torch.autograd.grad(result.square().sum(), q)
    return torch.cat([result, gradient])


def dropped(device: str) -> torch.Tensor:
    x = tokens(device, 40, 30).requires_grad_()
    result = F.dropout(x, 0.3)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    return torch.cat([result, gradient])


def recurrent(device: str, kind: str, **options: Any) -> torch.Tensor:
    torch.manual_seed(2)
    model = getattr(nn, kind)(4, 5, **options).to(device)
    x = tokens(device, 3, 4) if kind.endswith("Cell") else tokens(device, 6, 3, 4)
    x.requires_grad_()
    result = torch.cat([t.reshape(-1) for t in tree_leaves(model(x))])
    gradients = torch.autograd.grad(result.square().sum(), [x, *model.parameters()])
    return torch.cat([result, *(t.reshape(-1) for t in gradients)])


def packed(device: str, kind: str) -> torch.Tensor:
    torch.manual_seed(2)
    model = getattr(nn, kind)(4, 5).to(device)
    x = nn.utils.rnn.pack_padded_sequence(tokens(device, 6, 3, 4), torch.tensor([6, 4, 2]))
    return torch.cat([t.reshape(-1) for t in tree_leaves(model(x)[1])])


RECURRENT: dict[str, dict[str, Any]] = {
    "plain": {}, "layers": {"num_layers": 3}, "both ways": {"bidirectional": True},
    "batch first": {"batch_first": True, "num_layers": 2, "bidirectional": True},
    "no bias": {"bias": False},
}  # fmt: skip
WORK: dict[str, Callable[[str], torch.Tensor]] = {
    "dropout": dropped,
    "attention": attention,
    "causal": lambda d: attention(d, is_causal=True),
    "scale": lambda d: attention(d, scale=0.3),
    "mask of bool": lambda d: attention(d, mask=torch.ones(5, 5).tril().bool()),
    "mask of float": lambda d: attention(d, mask=tokens("cpu", 2, 1, 5, 5)),
    "dropout in attention": lambda d: attention(d, dropout_p=0.4),
    "LSTM with dropout": lambda d: recurrent(d, "LSTM", num_layers=2, dropout=0.5),
}
CELLS: dict[str, Callable[[str], torch.Tensor]] = {
    **{f"{kind}, {name}": partial(recurrent, kind=kind, **options)
       for kind in ("LSTM", "GRU") for name, options in RECURRENT.items()},
    **{f"{kind}, bias {bias}": partial(recurrent, kind=kind, bias=bias)
       for kind in ("LSTMCell", "GRUCell") for bias in (True, False)},
    "LSTM, projected": partial(recurrent, kind="LSTM", proj_size=2),
    **{f"{kind}, packed": partial(packed, kind=kind) for kind in ("LSTM", "GRU")},
}  # fmt: skip
WORK_AND_CELLS = WORK | CELLS
COMPOSED = ("projected", "packed")  # what PyTorch's composition does


def on_both(work: Callable[[str], torch.Tensor]) -> tuple[list[torch.Tensor], list[int]]:
    """Results and launches of one seed on ve, and on what carries it if that is counted."""
    found, launches = [], []
    sides = [("ve:0", torch.ve), ("graft:0", torch.graft)]
    for device, module in sides if torch.graft.device_count() else sides[:1]:
        work(device)
        torch.manual_seed(4)
        before = module.statistics()["launches"]
        found.append(work(device).cpu())
        module.synchronize()
        launches.append(module.statistics()["launches"] - before)
    return found, launches


@pytest.mark.parametrize("name", WORK)
def test_one_seed_gives_what_the_carrying_device_gives(name: str) -> None:
    found, launches = on_both(WORK[name])
    assert_close(found[0], found[-1], rtol=1e-5, atol=1e-6)
    assert 0 < launches[0] <= launches[-1]


@pytest.mark.parametrize("name", [name for name in WORK_AND_CELLS if "dropout" not in name])
def test_as_on_the_cpu(name: str) -> None:
    work = WORK_AND_CELLS[name]
    assert_close(work("ve").cpu(), work("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CELLS if not name.endswith(COMPOSED)])
def test_no_more_launches_than_on_the_carrying_device(name: str) -> None:
    _, launches = on_both(CELLS[name])
    assert 0 < launches[0] <= launches[-1]


def test_what_is_wrong_with_cells_is_said() -> None:
    x, hidden = tokens("ve", 6, 3, 4), tokens("ve", 1, 3, 5)
    weights = [tokens("ve", 15, 4), tokens("ve", 15, 5)]
    for bad in ([*weights, weights[0]], [weights[0], tokens("ve", 15, 6)], [weights[0].cpu(), weights[1]],
                [weights[0].half(), weights[1]]):  # fmt: skip
        with pytest.raises(RuntimeError):
            torch.gru(x, hidden, bad, False, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError):
        torch.gru_cell(x[0], hidden[0, :2], weights[0], weights[1])
    with pytest.raises(RuntimeError):
        torch.lstm_cell(x[0], [hidden[0]], weights[0], weights[1])
    assert (x + 1).device == x.device


def test_inference_mode() -> None:
    with torch.inference_mode():
        q = tokens("ve", 1, 2, 5, 4)
        assert_close(
            F.scaled_dot_product_attention(q, q, q).cpu(),
            F.scaled_dot_product_attention(*[q.cpu()] * 3), rtol=1e-4, atol=1e-5,
        )  # fmt: skip
        assert F.dropout(q, 0.5).device == q.device


def test_what_is_wrong_is_said_as_on_the_cpu() -> None:
    q = tokens("ve", 1, 2, 5, 4)
    for options in ({"is_causal": True, "attn_mask": torch.ones(5, 5, device="ve")},
                    {"attn_mask": torch.ones(5, 5, dtype=torch.int64, device="ve")},
                    {"attn_mask": torch.ones(5, 5)}):  # fmt: skip
        with pytest.raises(RuntimeError):
            F.scaled_dot_product_attention(q, q, q, **options)
    with pytest.raises(RuntimeError, match="same device"):
        F.scaled_dot_product_attention(q, q.cpu(), q)
    with pytest.raises(RuntimeError, match="dropout probability"):
        torch.dropout(q, 1.5, True)


def test_other_masks_and_ranks_take_the_composition() -> None:
    for device in ("ve", "cpu"):
        mask = tokens(device, 5, 5).requires_grad_()
        q = tokens(device, 2, 5, 4)
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask).sum().backward()
        assert mask.grad is not None
        assert mask.grad.device.type == device
