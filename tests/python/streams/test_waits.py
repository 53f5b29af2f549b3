"""torch.graft.set_sync_debug_mode: operators that wait for the device are told of, others are not."""

import warnings

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.both_modes

LARGE = 100_000  # numbers: more than a copy from pageable memory stages


@pytest.fixture
def mode(module):
    yield module.set_sync_debug_mode
    module.set_sync_debug_mode("default")


@pytest.fixture
def x(device):
    return torch.tensor([[0.5, -1.0, 2.0], [0.0, 3.0, -4.0]], device=device)


WAITING = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool((x > 0).any()),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "to, without pinned memory": lambda x: x.to("cpu").add(1),
    "repr": repr,
    "nonzero": lambda x: x.nonzero(),
    "a mask reads": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "where": lambda x: torch.where(x > 0),
    "unique": lambda x: x.unique(),
    "equal": lambda x: torch.equal(x, x + 1),
    "repeat_interleave": lambda x: x.repeat_interleave((x[:, 0] > 0).long(), 0),
    "one_hot": lambda x: nn.functional.one_hot(x.gt(0).long()),
    "a large copy from pageable memory": lambda x: torch.ones(LARGE).to(x.device),
}
SILENT = {
    "add": lambda x: x + 1,
    "index": lambda x: x[torch.arange(2, device=x.device)],
    "index assignment": lambda x: x.index_put_((x[:, 0].gt(0).long(),), x.new_ones(3)),
    "where of three": lambda x: torch.where(x > 0, x, -x),
    "a number where a mask says": lambda x: x.__setitem__(x > 0, 1.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "one_hot, classes given": lambda x: nn.functional.one_hot(x.gt(0).long(), 2),
    "nonzero_static": lambda x: x.nonzero_static(size=3),
    "sort": lambda x: x.sort(),
    "dropout": lambda x: nn.functional.dropout(x),
    "a small copy from pageable memory": lambda x: torch.tensor([1.0, 2.0]).to(x.device),
    "a factory": lambda x: torch.full((3,), 2.0, device=x.device),
    "split": lambda x: x.split([1, 2], 1),
}


@pytest.mark.parametrize("name", WAITING)
def test_what_waits_is_told_of(device, mode, x, name):
    text = f"called a synchronizing {device} operation: "
    mode("warn")
    with pytest.warns(UserWarning, match=text):
        expected = WAITING[name](x)
    mode("error")
    with pytest.raises(RuntimeError, match=text):
        WAITING[name](x)
    mode("default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = WAITING[name](x)
    if isinstance(expected, torch.Tensor):
        assert torch.equal(again, expected)
    else:
        assert str(again) == str(expected)


@pytest.mark.parametrize("name", SILENT)
def test_what_does_not_wait_is_silent(mode, x, name):
    mode("error")
    SILENT[name](x)


def test_pinned_copies_that_do_not_block_are_silent(device, mode, module):
    there, back = (
        torch.arange(LARGE).pin_memory(),
        torch.zeros(LARGE, dtype=torch.long).pin_memory(),
    )
    mode("error")
    x = there.to(device, non_blocking=True) + 1
    back.copy_(x, non_blocking=True)
    module.synchronize()
    assert back.tolist() == list(range(1, LARGE + 1))


def test_copies_between_devices_and_waits_that_were_asked_for_are_silent(
    device, second, mode, module, x
):
    event = torch.Event(device)
    mode("error")
    there = x.to(second) + 1
    event.record()
    event.synchronize()
    module.current_stream().synchronize()
    torch.accelerator.synchronize()
    module.synchronize(second)
    mode("default")
    assert torch.equal(there.cpu(), x.cpu() + 1)


def test_a_training_step_waits_for_nothing(device, mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    batch, labels = torch.randn(5, 4).to(device), torch.tensor([0, 1, 2, 0, 1]).to(device)
    losses = []
    mode("error")
    for _ in range(3):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    mode("default")
    assert losses[2].item() < losses[0].item()


def test_a_wait_inside_backward_is_an_error_of_backward(device, mode, x):
    class Waits(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * grad.sum().item()

    leaf = x.requires_grad_()
    y = Waits.apply(leaf).sum()
    mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing"):
        y.backward()
    mode("default")
    Waits.apply(leaf).sum().backward()
    assert leaf.grad.tolist() == [[6.0] * 3] * 2


def test_modes_have_names_and_numbers(mode, module):
    assert module.get_sync_debug_mode() == 0
    for name, number in (("warn", 1), ("error", 2), ("default", 0), (1, 1), (2, 2), (0, 0)):
        mode(name)
        assert module.get_sync_debug_mode() == number
    for wrong in ("loud", 3, -1, None):
        with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`"):
            mode(wrong)
    assert module.get_sync_debug_mode() == 0
