"""torch.autocast of the device against torch's own lists of what CUDA casts and how."""

import pytest
import torch
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
