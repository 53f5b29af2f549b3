# tests/python/quantization/test_flows.py: torch.ao's int8 flows and torchao's on the device: linear
# layers, convolutions, whole models.
from __future__ import annotations

import copy
import functools
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.ao import quantization as ao
from torch.nn import functional as F
from torch.testing import assert_close

import quantized_cases
from quantized_cases import QUIET, native
from sandbox import NAME, ROOT

pytestmark = QUIET
numbers = functools.partial(quantized_cases.numbers, spread=1.0)
ops = torch.ops.quantized


def weight_of(*sizes: int, channels: bool = True, zero: int = 0, seed: int = 1) -> torch.Tensor:
    """A qint8 weight on the CPU."""
    x = numbers(*sizes, seed=seed)
    if not channels:
        return torch.quantize_per_tensor(x, 0.02, zero, torch.qint8)
    count = sizes[0]
    zeros = torch.full((count,), zero)
    return torch.quantize_per_channel(x, torch.linspace(0.01, 0.04, count), zeros, 0, torch.qint8)


def input_of(*sizes: int, zero: int = 113) -> torch.Tensor:
    return torch.quantize_per_tensor(numbers(*sizes), 0.03, zero, torch.quint8)


def assert_stands_for(actual: torch.Tensor, exact: torch.Tensor, scale: float, zero: int) -> None:
    """Integers next to the exact numbers; only ties may fall to either side."""
    assert actual.device.type == NAME
    assert actual.q_scale() == pytest.approx(scale)
    assert actual.q_zero_point() == zero
    expected = (exact / scale).round().add(zero).clamp(0, 255)
    difference = (actual.int_repr().cpu().double() - expected).abs()
    assert difference.max() <= 1
    assert difference.mean() < 0.01


def chosen(x: torch.Tensor, reduce_range: bool) -> torch.Tensor:
    """The input as dynamic layers see it, in float64. PyTorch's own dynamic convolutions then bound
    their results by the range of the input; ours do not."""
    scale, zero = torch._choose_qparams_per_tensor(x, reduce_range)
    scale = torch.tensor(scale, dtype=torch.float32).item()
    return ((x * (1 / torch.tensor(scale))).round() + zero).clamp(0, 255).sub(zero).double() * scale


LINEAR = [{}, {"channels": False}, {"zero": 5}, {"channels": False, "zero": -4}]


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("zero", [0, 113])
def test_linear_layers_on_integers(kind: dict[str, Any], zero: int) -> None:
    weight, bias = weight_of(7, 20, **kind), numbers(7, seed=2)
    x = input_of(3, 5, 20, zero=zero)
    for b in (bias, None):
        with native():
            packed = ops.linear_prepack(weight.to(NAME), None if b is None else b.to(NAME))
            plain = ops.linear(x.to(NAME), packed, 0.1, 100)
            relu = ops.linear_relu(x.to(NAME), packed, 0.1, 4)
        exact = F.linear(
            x.dequantize().double(), weight.dequantize().double(), None if b is None else b.double()
        )
        assert plain.shape == (3, 5, 7)
        assert_stands_for(plain, exact, 0.1, 100)
        assert_stands_for(relu, exact.relu(), 0.1, 4)


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("reduce_range", [False, True])
def test_linear_layers_on_numbers(kind: dict[str, Any], reduce_range: bool) -> None:
    weight, bias = weight_of(7, 20, **kind), numbers(7, seed=2)
    for x in (numbers(6, 20), numbers(2, 3, 20).abs(), numbers(20, 4).t()):
        with native():
            packed = ops.linear_prepack(weight.to(NAME), bias.to(NAME))
            plain = ops.linear_dynamic(x.to(NAME), packed, reduce_range)
            relu = ops.linear_relu_dynamic(x.to(NAME), packed, reduce_range)
        exact = F.linear(chosen(x, reduce_range), weight.dequantize().double(), bias.double())
        assert_close(plain.cpu().double(), exact, rtol=1e-4, atol=1e-4)
        assert_close(relu.cpu().double(), exact.relu(), rtol=1e-4, atol=1e-4)
    assert ops.linear_dynamic(torch.empty(0, 20, device=NAME), packed).shape == (0, 7)


Steps = tuple[list[int], list[int], list[int], int]
CONVOLUTIONS: list[tuple[int, int, int, Steps]] = [
    (1, 4, 6, ([2], [1], [1], 2)), (2, 3, 8, ([1, 1], [1, 1], [1, 1], 1)), (2, 4, 6, ([2, 1], [0, 2], [1, 2], 2)),
    (2, 6, 6, ([1, 1], [1, 1], [1, 1], 6)), (3, 3, 4, ([1, 2, 1], [1, 0, 1], [1, 1, 1], 1)),
]  # fmt: skip


@pytest.mark.parametrize(("rank", "channels", "outs", "steps"), CONVOLUTIONS)
@pytest.mark.parametrize("zero", [0, 113])
def test_convolutions_on_integers(
    rank: int, channels: int, outs: int, steps: Steps, zero: int
) -> None:
    stride, padding, dilation, groups = steps
    weight = weight_of(outs, channels // groups, *[3] * rank)
    bias, x = numbers(outs, seed=2), input_of(2, channels, *[7] * rank, zero=zero)
    conv = getattr(F, f"conv{rank}d")
    exact = conv(
        x.dequantize().double(),
        weight.dequantize().double(),
        bias.double(),
        stride,
        padding,
        dilation,
        groups,
    )
    with native():
        packed = getattr(ops, f"conv{rank}d_prepack")(weight.to(NAME), bias.to(NAME), *steps)
        plain = getattr(ops, f"conv{rank}d")(x.to(NAME), packed, 0.1, 100)
        relu = getattr(ops, f"conv{rank}d_relu")(x.to(NAME), packed, 0.1, 3)
    assert_stands_for(plain, exact, 0.1, 100)
    assert_stands_for(relu, exact.relu(), 0.1, 3)


@pytest.mark.parametrize(("rank", "channels", "outs", "steps"), CONVOLUTIONS)
def test_convolutions_on_numbers(rank: int, channels: int, outs: int, steps: Steps) -> None:
    weight = weight_of(outs, channels // steps[3], *[3] * rank, zero=2)
    bias, x = numbers(outs, seed=2), numbers(2, channels, *[7] * rank)
    with native():
        packed = getattr(ops, f"conv{rank}d_prepack")(weight.to(NAME), bias.to(NAME), *steps)
        found = getattr(ops, f"conv{rank}d_dynamic")(x.to(NAME), packed, False)
    conv = getattr(F, f"conv{rank}d")
    exact = conv(chosen(x, False), weight.dequantize().double(), bias.double(), *steps)
    assert_close(found.cpu().double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", [1, 2])
def test_transposed_convolutions(rank: int) -> None:
    weight, bias = weight_of(4, 3, *[3] * rank, channels=False, zero=3), numbers(6, seed=2)
    x, two = input_of(2, 4, *[5] * rank), [2] * rank
    with native():
        packed = getattr(ops, f"conv_transpose{rank}d_prepack")(
            weight.to(NAME), bias.to(NAME), two, [1] * rank, [1] * rank, [1] * rank, 2
        )
        found = getattr(ops, f"conv_transpose{rank}d")(x.to(NAME), packed, 0.1, 100)
    conv = getattr(F, f"conv_transpose{rank}d")
    exact = conv(
        x.dequantize().double(), weight.dequantize().double(), bias.double(), two, 1, 1, 2, 1
    )
    assert_stands_for(found, exact, 0.1, 100)


def test_packed_weights_are_checked(second: str) -> None:
    if NAME == "cpu":
        return
    weight = weight_of(7, 20).to(NAME)
    with pytest.raises(RuntimeError, match="2-dimensional"):
        ops.linear_prepack(weight_of(2, 3, 4).to(NAME), None)
    with pytest.raises(RuntimeError, match="N elements"):
        ops.linear_prepack(weight, torch.zeros(3, device=NAME))
    with pytest.raises(RuntimeError, match="qint8"):
        ops.linear_prepack(input_of(7, 20).to(NAME), None)
    packed = ops.linear_prepack(weight, None)
    with pytest.raises(RuntimeError, match="20 columns"):
        ops.linear(input_of(3, 19).to(NAME), packed, 0.1, 0)
    with pytest.raises(RuntimeError, match="float32"):
        ops.linear_dynamic(torch.zeros(3, 20, dtype=torch.float64, device=NAME), packed)
    # A packed weight does not move with its module: it is copied to where its input lies.
    found = ops.linear(input_of(3, 20).to(second), packed, 0.1, 100)
    assert found.device == torch.device(second)
    assert torch.equal(
        found.cpu().int_repr(),
        ops.linear(input_of(3, 20).to(NAME), packed, 0.1, 100).cpu().int_repr(),
    )
    assert ops.linear(input_of(3, 20), packed, 0.1, 100).device.type == "cpu"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.pool, self.again = nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1)
        self.skip, self.mean = torch.ao.nn.quantized.FloatFunctional(), nn.AdaptiveAvgPool2d(2)
        self.act, self.fc = nn.Hardswish(), nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.bn(self.conv(self.quant(x)))))
        x = self.act(self.skip.add(x, self.again(x)))
        return self.dequant(self.fc(torch.flatten(self.mean(x), 1)))


def batch(seed: int = 0) -> torch.Tensor:
    return numbers(4, 3, 8, 8, seed=seed)


def statically(device: str, engine: str = "x86") -> nn.Module:
    """Net, calibrated and converted on device."""
    model = ao.fuse_modules(Net().eval(), [["conv", "bn", "relu"]]).to(device)
    model.qconfig = ao.get_default_qconfig(engine)
    ao.prepare(model, inplace=True)
    for seed in range(3):
        model(batch(seed).to(device))
    return ao.convert(model)


def test_a_model_is_quantized_on_the_device() -> None:
    expected, plain = statically("cpu")(batch(9)), Net().eval()(batch(9))
    model = statically(NAME)
    assert isinstance(model.conv, torch.ao.nn.intrinsic.quantized.ConvReLU2d)
    with native():
        found = model(batch(9).to(NAME))
    assert found.device.type == NAME
    assert_close(found.cpu(), expected, rtol=0, atol=3 * model.fc.scale)
    assert (found.cpu() - plain).abs().max() < 0.1


def test_a_model_that_was_quantized_on_the_cpu_moves() -> None:
    model = statically("cpu")
    expected = model(batch(9))
    model.to(NAME)
    model(batch(9).to(NAME))
    with native():
        found = model(batch(9).to(NAME))
    assert_close(found.cpu(), expected, rtol=0, atol=3 * model.fc.scale)


def loaded(model: nn.Module) -> nn.Module:
    other = statically(NAME)
    with torch.no_grad():
        other.fc._packed_params.set_weight_bias(weight_of(5, 32).to(NAME), None)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=False))
    return other


def with_saved_layer(model: nn.Module) -> nn.Module:
    """PyTorch's own classes of quantized convolutions cannot be pickled."""
    other, file = copy.deepcopy(model), io.BytesIO()
    torch.save(model.fc, file)
    file.seek(0)
    other.fc = torch.load(file, weights_only=False)
    return other


@pytest.mark.parametrize("copied", [copy.deepcopy, loaded, with_saved_layer])
def test_quantized_models_are_copied_and_saved(copied: Callable[[nn.Module], nn.Module]) -> None:
    model = statically(NAME)
    expected = model(batch(9).to(NAME))
    other = copied(model)
    assert_close(other(batch(9).to(NAME)), expected, rtol=0, atol=0)
    assert torch.equal(other.fc.weight().int_repr().cpu(), model.fc.weight().int_repr().cpu())


def test_graph_mode_gives_the_same_integers() -> None:
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    class Plain(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.pool(self.relu(self.bn(self.conv(x))))
            x = self.act(x + self.again(x))
            return self.fc(torch.flatten(self.mean(x), 1))

    results = []
    for device in ("cpu", NAME):
        model = prepare_fx(
            Plain().eval().to(device), ao.get_default_qconfig_mapping("x86"), (batch().to(device),)
        )
        for seed in range(3):
            model(batch(seed).to(device))
        model = convert_fx(model)
        with native(device):
            results.append(model(batch(9).to(device)).cpu())
    assert_close(results[1], results[0], rtol=0, atol=0.02)


def test_linear_layers_become_dynamic() -> None:
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
    expected = ao.quantize_dynamic(model)(numbers(5, 12))
    for made in (
        ao.quantize_dynamic(copy.deepcopy(model).to(NAME)),
        ao.quantize_dynamic(model).to(NAME),
    ):
        assert isinstance(made[0], torch.ao.nn.quantized.dynamic.Linear)
        made(numbers(5, 12).to(NAME))
        with native():
            found = made(numbers(5, 12).to(NAME))
        assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-3)


def test_recurrent_layers_become_dynamic() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.LSTM(6, 8, 2))
    x = numbers(5, 3, 6)
    expected, (h, c) = ao.quantize_dynamic(model, {nn.LSTM})(x)
    quantized = ao.quantize_dynamic(copy.deepcopy(model).to(NAME), {nn.LSTM})
    assert isinstance(quantized[0], torch.ao.nn.quantized.dynamic.LSTM)
    found, states = quantized(x.to(NAME))
    assert found.device.type == NAME
    assert_close([found.cpu(), *(s.cpu() for s in states)], [expected, h, c], rtol=1e-3, atol=1e-3)


def trained(device: str) -> tuple[list[float], torch.Tensor]:
    """Losses of quantization aware training, and the converted model's results."""
    model = ao.fuse_modules_qat(Net().train(), [["conv", "bn", "relu"]]).to(device)
    model.qconfig = ao.get_default_qat_qconfig("x86")
    ao.prepare_qat(model, inplace=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for seed in range(4):
        with native(device):
            loss = F.cross_entropy(model(batch(seed).to(device)), torch.arange(4, device=device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses, ao.convert(model.eval())(batch(9).to(device)).cpu()


def test_training_knows_of_the_quantization_to_come() -> None:
    expected, found = trained("cpu"), trained(NAME)
    assert_close(found[0], expected[0], rtol=1e-2, atol=1e-2)
    assert_close(found[1], expected[1], rtol=0, atol=0.1)


@pytest.mark.parametrize("name", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_torchao_quantizes_an_unmodified_model(name: str, dtype: torch.dtype) -> None:
    from torchao import quantization as torchao

    def results(device: str, move_first: bool) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16)).to(dtype).eval()
        model = model.to(device) if move_first else model
        torchao.quantize_(model, getattr(torchao, name)())
        model = model.to(device)
        assert type(model[0].weight).__name__ == "Int8Tensor"
        assert model[0].weight.device.type == device
        with torch.no_grad(), native(device):
            return model(numbers(8, 32).to(dtype).to(device)).cpu()

    expected = results("cpu", True)
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-4
    for move_first in (True, False):
        assert_close(results(NAME, move_first), expected, rtol=tolerance, atol=tolerance)


def test_the_example_keeps_its_answers(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples/quantized_inference.py"), "--device", NAME, "--epochs", "3", "--out", str(tmp_path)],
        env=os.environ | {"GRAFT_FALLBACK": "forbid"}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = (tmp_path / "quantized.txt").read_text().splitlines()
    assert [line[:12].rstrip() for line in lines] == ["float32", "int8 dynamic", "int8 static"]
    fields = [line[13:].split() for line in lines]
    assert all(float(same) > 0.97 for _, _, _, _, same, *_ in fields), ran.stdout
    sizes = [int(field[-2]) for field in fields]
    assert sizes[2] < sizes[0] / 3
