"""torch.autocast of the device against torch's own lists of what CUDA casts and how."""

import copy
import gc
import warnings

import pytest
import torch
from torch.testing import assert_close
from torch.testing._internal.autocast_test_lists import AutocastTestLists, TestAutocast

LOWER = [torch.float16, torch.bfloat16]


class Judge(TestAutocast):
    """PyTorch's check: dtype, function and method alike, bitwise as if cast by hand."""

    def runTest(self):
        pass

    def entries(self, device, listing):
        """The cases of a list. One with a mark in place of keywords is left out by PyTorch's tests
        too: cuDNN's own operators, and einsum, whose equation stands where its tensors should."""
        for entry in getattr(AutocastTestLists(device), listing):
            op, arguments, keywords = self.args_maybe_kwargs(entry)
            if isinstance(keywords, dict) and not op.startswith("cudnn"):
                yield op, arguments, keywords


@pytest.fixture
def judge():
    return Judge()


def run(judge, device, listing, run_as, module=torch, out=None, dtype=torch.bfloat16):
    count = 0
    for op, arguments, keywords in judge.entries(device, listing):
        judge._run_autocast_outofplace(
            op, arguments, run_as, device, out, module, keywords, amp_dtype=dtype
        )
        count += 1
    assert count > 0


@pytest.mark.parametrize("dtype", LOWER)
@pytest.mark.parametrize(
    ("listing", "module"),
    [("torch_fp16", torch), ("nn_fp16", torch._C._nn), ("linalg_fp16", torch._C._linalg), ("methods_fp16", None)],
)  # fmt: skip
def test_lower_precision(device, judge, listing, module, dtype):
    run(judge, device, listing, dtype, module, dtype=dtype)


@pytest.mark.parametrize(
    ("listing", "module"),
    [("torch_fp32", torch), ("nn_fp32", torch._C._nn), ("methods_fp32", None)],
)
def test_float32(device, judge, listing, module):
    run(judge, device, listing, torch.float32, module, dtype=torch.float16)


def test_promotion(device, judge):
    run(judge, device, "torch_need_autocast_promote", torch.float32, dtype=torch.float16)


def test_promotion_without_a_rule(device, judge):
    for op, arguments, out in judge.entries(device, "torch_expect_builtin_promote"):
        judge._run_autocast_outofplace(op, arguments, torch.float32, device, out_type=out)


def test_banned(device):
    (name, arguments, module) = AutocastTestLists(device).banned[0]
    with (
        torch.autocast(device, dtype=torch.float16),
        pytest.raises(RuntimeError, match="unsafe to autocast"),
    ):
        getattr(module, name)(*arguments)


def test_training_step(device):
    """Parameters and their gradients stay float32; nested regions switch the casts off and on."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    model = model.to(device)
    x = torch.randn(5, 8, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        y = model(x)
        with torch.autocast(device, enabled=False):
            exact = model(x)
        assert model(x).dtype == torch.bfloat16
        loss = torch.nn.functional.cross_entropy(y, torch.arange(5, device=device) % 4)
    assert (y.dtype, exact.dtype, loss.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    torch.testing.assert_close(y.float(), exact, rtol=0.05, atol=0.05)
    loss.backward()
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}


def test_einsum(device):
    a, b = torch.randn(2, 3, 4, device=device), torch.randn(2, 4, 5, device=device)
    with torch.autocast(device, dtype=torch.float16):
        assert torch.einsum("bij,bjk->bik", a, b).dtype == torch.float16


def test_custom_function(device):
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)
        def backward(ctx, gradient):
            a, b = ctx.saved_tensors
            assert torch.is_autocast_enabled(device)
            return gradient.mm(b.t()), a.t().mm(gradient)

    a, b = (torch.randn(4, 4, device=device, requires_grad=True) for _ in range(2))
    with torch.autocast(device, dtype=torch.float16):
        out = Product.apply(a, b)
    assert out.dtype == torch.float16
    out.sum().backward()
    assert a.grad.dtype == torch.float32


@pytest.mark.any_driver
def test_autocast_leaves_double_and_integers_alone(device):
    double, half = (torch.ones(4, 4, dtype=t, device=device) for t in (torch.double, torch.half))
    whole = torch.ones(4, 4, dtype=torch.int32, device=device)
    with torch.autocast(device):
        assert torch.mm(double, double).dtype == torch.double
        with pytest.raises(RuntimeError, match="dtype"):
            torch.mm(double, half)
        assert [f(double).dtype for f in (torch.norm, torch.sum)] == [torch.double] * 2
        assert torch.pow(double, 2.0).dtype == torch.double
        assert (torch.pow(whole, 2.0).dtype, torch.sum(whole).dtype) == (torch.float, torch.int64)


@pytest.mark.any_driver
def test_casts_under_no_grad_are_not_kept(device):
    gc.collect()
    layer = torch.nn.Linear(10, 10).to(device)
    x = torch.randn(1, 10, device=device)
    with torch.autocast(device), torch.no_grad():
        out = layer(x)
        held = torch.accelerator.memory_allocated()
        for _ in range(3):
            out = layer(x)
        assert torch.accelerator.memory_allocated() == held
    assert out.dtype == torch.float16


@pytest.mark.any_driver
def test_promotion_inside_a_scripted_function(device):
    class Joined(torch.nn.Module):
        def forward(self, a, b):
            return torch.stack([torch.cat((a, b), 0)] * 2, 0)

    a, b = torch.randn(1, device=device), torch.randn(1, device=device).half()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(Joined())
    with torch.autocast(device):
        assert scripted(a, b).dtype == Joined()(a, b).dtype == torch.float32


@pytest.mark.any_driver
@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_modules_run_in_half_precision(device, kind, packed):
    torch.manual_seed(0)
    steps, batch, features, hidden = 3, 4, 5, 6
    model = getattr(torch.nn, kind)(features, hidden, num_layers=2, bidirectional=True).to(device)
    x = torch.randn(steps, batch, features, device=device)
    state = torch.randn(4, batch, hidden, device=device)

    def data(value):
        return value.data if packed else value

    def run(module, dtype):
        given = x.to(dtype)
        if packed:
            given = torch.nn.utils.rnn.pack_padded_sequence(
                given, lengths=(3, 2, 1, 3), enforce_sorted=False
            )
        start = state.to(dtype)
        out, _ = module(given, (start, start) if kind == "LSTM" else start)
        data(out).sum().backward()
        return data(out), [p.grad.half() for p in module.parameters()]

    by_hand = copy.deepcopy(model).half()
    with torch.autocast(device):
        out, gradients = run(model, torch.float32)
    expected, expected_gradients = run(by_hand, torch.float16)
    assert out.dtype == torch.float16
    assert_close(out, expected)
    # Sums of a dozen half numbers up to 1, in another order.
    assert_close(gradients, expected_gradients, rtol=1e-3, atol=1e-3)


@pytest.mark.any_driver
def test_autocast_wants_the_name_of_a_device(device):
    assert torch.amp.is_autocast_available(device)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(torch.device(device))
    with pytest.raises(RuntimeError, match="Invalid device string: 'no device'"):
        torch.autocast("no device")
