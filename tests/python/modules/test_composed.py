"""Modules that hold other modules' state: recurrent and transformer ones, parametrizations, hooks."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, prune
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpad_sequence,
)
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

pytestmark = pytest.mark.any_driver

SOURCE = torch.Generator().manual_seed(8)


def rand(*shape):
    return torch.randn(shape, generator=SOURCE)


SEQUENCE, TARGET, IMAGE = rand(2, 5, 16), rand(2, 3, 16), rand(2, 4, 8, 8)
PADDING = torch.arange(5) >= torch.tensor([[3], [5]])
# name -> (module, inputs)
MODULES = {
    "LSTM": (lambda: nn.LSTM(16, 8, 2, bidirectional=True, proj_size=4), SEQUENCE),
    "GRU": (lambda: nn.GRU(16, 8, 2, bidirectional=True, batch_first=True), SEQUENCE),
    "RNN": (lambda: nn.RNN(16, 8, nonlinearity="relu"), SEQUENCE),
    "LSTMCell": (lambda: nn.LSTMCell(16, 8), SEQUENCE[0]),
    "GRUCell": (lambda: nn.GRUCell(16, 8), SEQUENCE[0]),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(16, 2, batch_first=True), *[SEQUENCE] * 3),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), SEQUENCE),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(16, 2, 32, 0.0, batch_first=True), TARGET, SEQUENCE),
    "Transformer": (
        lambda: nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True), SEQUENCE, TARGET),
    "weight_norm": (lambda: parametrizations.weight_norm(nn.Linear(16, 3)), SEQUENCE),
    "weight_norm of a convolution": (
        lambda: parametrizations.weight_norm(nn.Conv2d(4, 3, 3), dim=None), IMAGE),
    "spectral_norm": (lambda: parametrizations.spectral_norm(nn.Linear(16, 3)), SEQUENCE),
    "orthogonal": (lambda: parametrizations.orthogonal(nn.Linear(16, 3)), SEQUENCE),
    "cayley": (
        lambda: parametrizations.orthogonal(nn.Linear(16, 16), orthogonal_map="cayley"), SEQUENCE),
    "householder": (
        lambda: parametrizations.orthogonal(nn.Linear(16, 3), orthogonal_map="householder"),
        SEQUENCE),
    "old weight_norm": (lambda: nn.utils.weight_norm(nn.Linear(16, 3)), SEQUENCE),
    "old spectral_norm": (lambda: nn.utils.spectral_norm(nn.Linear(16, 3)), SEQUENCE),
    "pruned": (lambda: prune.l1_unstructured(nn.Linear(16, 3), "weight", 0.5), SEQUENCE),
    "Bilinear": (lambda: nn.Bilinear(16, 16, 3), SEQUENCE, SEQUENCE),
    "InstanceNorm2d": (
        lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True), IMAGE),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), IMAGE),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6]), SEQUENCE[0], torch.arange(5) * 2),
}  # fmt: skip


def passed(make, device, inputs, call=lambda module, *given: module(*given)):
    """Outputs, gradients and buffers of a forward and a backward."""
    torch.manual_seed(0)
    module = make().to(device)
    given = [t.detach().to(device, copy=True).requires_grad_(t.is_floating_point()) for t in inputs]
    outputs = [t for t in tree_leaves(call(module, *given)) if isinstance(t, torch.Tensor)]
    assert {t.device.type for t in outputs if t.requires_grad} == {torch.device(device).type}
    sum(t.square().sum() for t in outputs if t.requires_grad).backward()
    gradients = [t.grad for t in (*given, *module.parameters()) if t.grad is not None]
    return [t.detach().cpu() for t in (*outputs, *gradients, *module.buffers())]


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
@pytest.mark.parametrize("name", MODULES)
def test_forward_and_backward(device, module, name):
    make, *inputs = MODULES[name]
    expected = passed(make, "cpu", inputs)
    with module.fallback.forbid():
        found = passed(make, device, inputs)
    assert_close(found, expected, rtol=1e-3, atol=1e-4)


INFERENCE = {
    "encoder": lambda m, x: m(x),
    "padded encoder": lambda m, x: m(x, src_key_padding_mask=PADDING.to(x.device)),
    "causal encoder": lambda m, x: m(
        x, src_mask=nn.Transformer.generate_square_subsequent_mask(5, device=x.device),
        is_causal=True),
}  # fmt: skip


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("name", INFERENCE)
def test_transformers_in_inference(device, module, name, norm_first):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, F.gelu, batch_first=True,
                                       norm_first=norm_first).eval()  # fmt: skip
    with torch.no_grad():
        expected = INFERENCE[name](layer, SEQUENCE)
        with module.fallback.forbid():
            found = INFERENCE[name](layer.to(device), SEQUENCE.to(device))
    seen = ~PADDING if "padded" in name else torch.ones_like(PADDING)
    assert_close(found.cpu()[seen], expected[seen], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_sequences(device, module, kind, bidirectional):
    lengths = torch.tensor([4, 6, 2])

    def call(recurrent, x):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, state = recurrent(packed)
        return *pad_packed_sequence(output, batch_first=True), state

    def make():
        return kind(5, 4, 2, bidirectional=bidirectional, batch_first=True)

    x = torch.linspace(-1, 1, 90).reshape(3, 6, 5)
    expected = passed(make, "cpu", [x], call)
    with module.fallback.forbid():
        assert_close(passed(make, device, [x], call), expected, rtol=1e-3, atol=1e-4)


def test_packed_sequences_between_devices(device):
    parts = [torch.arange(4.0), torch.arange(6.0), torch.arange(2.0)]
    here = pack_sequence(parts, enforce_sorted=False)
    packed = here.to(device)
    assert isinstance(packed, PackedSequence)
    # The sizes of the batches steer a loop of the host, as for torch.cuda.
    places = {t.device.type for t in (packed.data, packed.sorted_indices, packed.unsorted_indices)}
    assert (places, packed.batch_sizes.device.type) == ({device}, "cpu")
    assert_close([t.cpu() for t in pad_packed_sequence(packed)], list(pad_packed_sequence(here)))
    assert packed.cpu().data.device.type == "cpu"
    assert here.pin_memory().data.is_pinned()
    padded = pad_sequence([p.to(device) for p in parts], batch_first=True)
    assert_close([t.cpu() for t in unpad_sequence(padded, torch.tensor([4, 6, 2]), True)], parts)
    with pytest.raises(RuntimeError, match=f"should be a 1D CPU int64 tensor, but got 1D {device}"):
        pack_padded_sequence(padded, torch.tensor([4, 6, 2], device=device), True, False)


def test_parametrizations_keep_their_place(device, second):
    linear = parametrizations.orthogonal(nn.Linear(6, 4)).to(device)
    assert {p.device.type for p in linear.parameters()} == {device}
    assert_close(linear.weight @ linear.weight.t(), torch.eye(4, device=device))
    linear.weight = nn.init.orthogonal_(torch.empty(4, 6, device=device))
    twin = copy.deepcopy(linear).to(second)
    assert_close(twin.weight.cpu(), linear.weight.cpu(), rtol=1e-4, atol=1e-5)
    with nn.utils.parametrize.cached():
        assert linear.weight is linear.weight
    nn.utils.parametrize.remove_parametrizations(linear, "weight")
    assert type(linear.weight) is nn.Parameter
    assert linear.weight.device.type == device


def test_hooks_see_tensors_of_the_device(device):
    model, seen = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).to(device), []

    def note(name):
        def hook(*arguments):
            tensors = [t for t in tree_leaves(arguments) if isinstance(t, torch.Tensor)]
            seen.append((name, {t.device.type for t in tensors}))

        return hook

    def doubled(layer, inputs, output):
        return output * 2

    first = model[0]
    first.register_forward_pre_hook(note("before"))
    first.register_forward_hook(doubled)
    model.register_forward_hook(note("after"))
    model.register_full_backward_pre_hook(note("backward before"))
    first.register_full_backward_hook(note("backward"))
    first.weight.register_hook(lambda grad: grad * 3)
    first.weight.register_post_accumulate_grad_hook(note("accumulated"))
    x = torch.ones(2, 3, device=device, requires_grad=True)
    model(x).sum().backward()
    order = ["before", "after", "backward before", "accumulated", "backward"]
    assert [name for name, _ in seen] == order
    assert all(places == {device} for _, places in seen)
    active = (first(x) > 0).float()
    assert_close(first.weight.grad, 6 * active.t() @ x)


def test_a_moved_module_keeps_its_parameters(device, second):
    """As for torch.cuda: an optimizer that was made before the move trains what was moved."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    model[2].weight.register_hook(lambda grad: grad)
    before = list(model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for where in (device, second, "cpu", device):
        model.to(where)
        assert all(a is b for a, b in zip(model.parameters(), before, strict=True))
        assert {str(p.device) for p in before} == {str(torch.empty(0, device=where).device)}
        optimizer.zero_grad(set_to_none=False)
        start = model[0].weight.detach().clone()
        model(torch.eye(3, device=where)).square().sum().backward()
        optimizer.step()
        assert before[0].grad.device == before[0].device
        assert not torch.equal(model[0].weight, start)


def test_a_lazy_module_is_moved_before_its_first_batch(device):
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()).to(device)
    assert model(torch.ones(2, 3, device=device)).shape == (2, 4)
    assert model[0].weight.device.type == device
    made = nn.LazyConv2d(2, 3, device=device)
    assert made(torch.ones(1, 5, 4, 4, device=device)).device.type == device


def test_data_of_a_parameter_may_change_its_device(device):
    parameter = nn.Parameter(torch.ones(3))
    parameter.data = torch.full((3,), 2.0, device=device)
    assert (parameter.device.type, parameter.tolist()) == (device, [2.0] * 3)
    (parameter * 4).sum().backward()
    assert_close(parameter.grad, torch.full((3,), 4.0, device=device))
    parameter.grad = None
    parameter.data = torch.zeros(3)
    (parameter * 5).sum().backward()
    assert parameter.grad.device.type == "cpu"


def test_modules_from_the_meta_device(device):
    torch.manual_seed(0)
    source = nn.Linear(3, 2, device=device)
    empty = nn.Linear(3, 2, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        empty.to(device)
    copied = copy.deepcopy(empty).to_empty(device=device)
    copied.load_state_dict(source.state_dict())
    assert_close(copied.weight, source.weight)
    empty.load_state_dict(source.state_dict(), assign=True)
    assert empty.weight.data_ptr() == source.weight.data_ptr()
    assert nn.utils.skip_init(nn.Linear, 3, 2, device=device).weight.device.type == device
