"""Products, parts of complex numbers, hinge losses and late assertions against the CPU."""

import itertools

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
LAYOUTS = {
    "contiguous": lambda x: x, "transposed": lambda x: x.mT.contiguous().mT,
    "stepped": lambda x: x.repeat_interleave(2, -1)[..., ::2], "empty": lambda x: x[:0],
}  # fmt: skip
LABELS = torch.tensor([[2, 0, -1, 1, 3, 4], [5, -1, 0, 0, 0, 0], [-1, 1, 2, 3, 4, 5]])

# name -> function of two tensors [3, 6] in (0, 1); its gradients are compared, too
CALLS = {
    "cross": lambda x, y: torch.linalg.cross(x, y[:, :1], dim=0),
    "addr": lambda x, y: torch.addr(x, y[:, 0], x[0] if len(x) else x.new_ones(6), beta=0.5, alpha=2),
    "addr plain": lambda x, y: torch.addr(x[:0].sum(), y[:, 0], y.sum(0), beta=0),
    "renorm": lambda x, y: x.renorm(2, 0, 0.75),
    "glu": lambda x, y: F.glu(x, -1) * y[:, :3],
    "bce": lambda x, y: F.binary_cross_entropy(x, y),
    "bce weighted": lambda x, y: F.binary_cross_entropy(x, y.detach(), y.detach(), reduction="sum"),
    "bce each": lambda x, y: F.binary_cross_entropy(x, y, reduction="none"),
    "multi margin": lambda x, y: F.multi_margin_loss(x, LABELS[: len(x), 0].abs().to(x.device)),
    "multi margin squared":
        lambda x, y: F.multi_margin_loss(x, LABELS[: len(x), 0].abs().to(x.device), 2, 0.7, y.detach().sum(0), reduction="none"),
    "multilabel": lambda x, y: F.multilabel_margin_loss(x, LABELS[: len(x)].to(x.device)),
    "multilabel each": lambda x, y: F.multilabel_margin_loss(x, LABELS[: len(x)].to(x.device), reduction="none"),
    "rrelu": lambda x, y: F.rrelu(x - 0.5, training=False) * y,
    "sgn": lambda x, y: torch.sgn(x - 0.5) + y,
}  # fmt: skip
# The CPU refuses half types of the hinge losses.
CASES = [
    (name, layout, dtype)
    for name in CALLS for layout in LAYOUTS for dtype in FLOATS
    if not (name.startswith("multi") and dtype in FLOATS[2:]) and (layout != "empty" or name == "glu")
]  # fmt: skip


@pytest.mark.parametrize(("name", "layout", "dtype"), CASES)
def test_against_the_cpu(device, name, layout, dtype):
    call, results = CALLS[name], []
    for place in ("cpu", device):
        generator = torch.Generator().manual_seed(6)
        leaves = [torch.rand(3, 6, generator=generator).to(dtype).to(place) for _ in range(2)]
        leaves = [LAYOUTS[layout](x).detach().requires_grad_() for x in leaves]
        found = call(*leaves)
        found.sum().backward()
        grads = [x.grad for x in leaves if x.grad is not None]
        results.append([x.detach().cpu() for x in (found, *grads)])
    loose = {} if dtype in FLOATS[:2] else {"rtol": 4e-2, "atol": 4e-2}
    assert_close(results[1], results[0], **loose)


@pytest.mark.parametrize("dtype", FLOATS[:2])
@pytest.mark.parametrize("make", [torch.complex, torch.polar])
def test_complex_from_parts(device, make, dtype):
    a, b = torch.randn(5, 4, dtype=dtype), torch.randn(4, dtype=dtype)
    b = b.expand(5, 4)
    assert_close(make(a.to(device), b.to(device)).cpu(), make(a, b))
    out = torch.empty(4, 5, dtype=make(a, b).dtype, device=device).t()
    make(a.to(device), b.to(device), out=out)
    assert_close(out.cpu(), make(a, b))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64, torch.uint8])
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_logspace(device, steps, dtype):
    for base, end in ((10.0, 2.2), (2.0, 6), (0.5, 3)):
        expected = torch.logspace(0, end, steps, base, dtype=dtype)
        found = torch.logspace(0, end, steps, base, dtype=dtype, device=device)
        assert_close(found.cpu(), expected)


def test_assertions_are_late_and_leave_the_device_usable(device):
    torch._assert_async(torch.ones((), device=device))
    torch._assert_async(torch.zeros((), device=device), "the message")
    with pytest.raises(RuntimeError, match="the message"):
        torch.ones(1, device=device).cpu()
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch._assert_async(torch.ones(2, device=device))
    half = torch.full((4,), 0.5, device=device)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(half + 1, half).cpu()
    assert F.binary_cross_entropy(half, half).cpu() > 0


def test_zero_tensors_become_zeros(device):
    zeros = torch._efficientzerotensor((2, 3), device=device)
    assert zeros.cpu().equal(torch.zeros(2, 3))
    assert (zeros + 1).cpu().equal(torch.ones(2, 3))


def test_rrelu_draws_its_noise(device):
    torch.manual_seed(2)  # the noise has another seed: from the same one it would depend on x
    x = torch.randn(20_000, device=device)
    torch.manual_seed(3)
    first = F.rrelu(x, 0.1, 0.4, training=True)
    torch.manual_seed(3)
    assert first.equal(F.rrelu(x, 0.1, 0.4, training=True))
    slopes = (first / x)[x < 0].cpu()
    assert slopes.min() >= 0.0999 and slopes.max() <= 0.4001  # noqa: PT018
    assert abs(slopes.mean() - 0.25) < 0.01
    assert first[x > 0].equal(x[x > 0])


SCALED = {
    "addmm": lambda c, a, b, **k: torch.addmm(c, a, b, **k),
    "addmm of a row": lambda c, a, b, **k: torch.addmm(c[0], a, b, **k),
    "addmm turned": lambda c, a, b, **k: torch.addmm(c, b, a, **k),
    "addmv": lambda c, a, b, **k: torch.addmv(c[0], a, b[0], **k),
    "addbmm": lambda c, a, b, **k: torch.addbmm(c, a[None], b[None], **k),
    "baddbmm": lambda c, a, b, **k: torch.baddbmm(c[None], a[None], b[None], **k),
    "addr": lambda c, a, b, **k: torch.addr(c, a[0], b[0], **k),
    "addmm_": lambda c, a, b, **k: c.clone().addmm_(a, b, **k),
    "activation": lambda c, a, b, **k: torch._addmm_activation(c[0], a, b, **k),
    "gelu": lambda c, a, b, **k: torch._addmm_activation(c[0], a, b, use_gelu=True, **k),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("name", SCALED)
def test_factors_of_nothing_spread_no_nan(device, native, name, dtype):
    if dtype.is_complex and name in ("activation", "gelu"):
        return
    call = SCALED[name]
    factors = (0,) if name in ("activation", "gelu") else (0, 0.5)
    if name == "baddbmm" and dtype == torch.bfloat16:
        factors = (0.5,)  # by 0 some processors' oneDNN leaves the CPU's result unwritten
    for size, beta, alpha in itertools.product((2, 9, 40), (0, 1, -2.5), factors):
        a, b, c = (torch.linspace(-1, 2, size * size).view(size, size).to(dtype) for _ in range(3))
        a[0, 0], b[-1, 0] = torch.nan, torch.inf
        expected = call(c, a, b, beta=beta, alpha=alpha)
        found = call(*(x.to(device) for x in (c, a, b)), beta=beta, alpha=alpha)
        where = found.isnan().cpu()
        assert torch.equal(where, expected.isnan())
        if alpha == 0:
            assert_close(found.cpu()[~where], expected[~where])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_images_in_any_layout(device, native, reduction, weighted):
    scores = torch.linspace(-2, 2, 120).view(2, 3, 5, 4).sin()
    target = torch.arange(40).view(2, 5, 4) % 3
    weight = torch.tensor([0.2, 0.3, 0.5]) if weighted else None
    for layout in (
        lambda x: x.mT,
        lambda x: x[..., :-1],
        lambda x: x[..., ::2, :],
        lambda x: x[..., :1].expand(x.shape),
    ):
        results = []
        for place in ("cpu", device):
            x = scores.to(place).requires_grad_()
            y, w = layout(target.to(place)), weight if weight is None else weight.to(place)
            made = layout(x)
            if place == "cpu":  # whose gradient takes contiguous scores alone
                made, y = made.contiguous(), y.contiguous()
            loss = F.nll_loss(made, y, w, reduction=reduction)
            cotangents = [torch.ones((), device=place).expand(loss.shape)]
            if loss.dim() > 0:
                cotangents.append(torch.stack([loss.detach(), loss.detach()], -1)[..., 0])
            grads = [torch.autograd.grad(loss, x, c, retain_graph=True)[0] for c in cotangents]
            results.append([loss.detach().cpu(), *[g.cpu() for g in grads]])
        assert_close(results[1], results[0])


aten = torch.ops.aten
SCORES = torch.linspace(-2, 2, 12).view(3, 4).sin()
TARGET, SETS = torch.tensor([1, 3, 0]), torch.tensor([[2, -1, 0, 0], [0, 1, -1, 0], [3, 2, 1, 0]])
# name -> call of an operator whose outputs the CPU takes in the scores' dtype alone
INTO = {
    "bce": lambda d, r, *out: aten.binary_cross_entropy.out(SCORES.to(d) ** 2, SCORES.to(d) ** 2, None, r, out=out[0]),
    "multi margin": lambda d, r, *out: aten.multi_margin_loss.out(
        SCORES.to(d), TARGET.to(d), 1, 1, None, r, out=out[0]),
    "multilabel": lambda d, r, *out: aten.multilabel_margin_loss_forward.output(
        SCORES.to(d), SETS.to(d), r, output=out[0], is_target=out[1]),
    "nll of images": lambda d, r, *out: aten.nll_loss2d_forward.output(
        SCORES.to(d).view(1, 3, 2, 2), SETS.to(d)[:1].view(1, 2, 2).abs(), None, r, -100, output=out[0], total_weight=out[1]),
    "log sigmoid": lambda d, r, *out: aten.log_sigmoid_forward.output(SCORES.to(d), output=out[0], buffer=out[1]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize("name", INTO)
def test_losses_into_outputs(device, name):
    """Of sizes that do not fit, and by numbers of reductions that stand for a sum, or for none."""
    for reduction in (0, 1, 2, 7, 2**32, 2**32 + 1):
        if name == "bce":
            break  # the CPU writes beyond the end of an output of another size
        results = [INTO[name](d, reduction, *(torch.ones(5, device=d) for _ in "12")) for d in ("cpu", device)]  # fmt: skip
        expected, found = ([r] if isinstance(r, torch.Tensor) else r for r in results)
        for a, b in zip(found, expected, strict=True):
            assert_close(a.cpu(), b)
    for other in range(2 if name in ("multilabel", "nll of images", "log sigmoid") else 1):
        words = []
        for d in ("cpu", device):
            out = [torch.ones(5, device=d), torch.ones(5, device=d)]
            out[other] = out[other].double()
            with pytest.raises(RuntimeError) as refusal:
                INTO[name](d, 1, *out)
            words.append(str(refusal.value).split("\n")[0])
        assert words[1] == words[0]


def test_log_sigmoid_of_its_own_output(device):
    for which in ({"output": 0}, {"buffer": 0}):
        x, other = SCORES.to(device), torch.empty(0, device=device)
        out = {name: x if name in which else other for name in ("output", "buffer")}
        aten.log_sigmoid_forward.output(x, **out)
        assert_close(out["output"].cpu(), F.logsigmoid(SCORES))
        assert_close(out["buffer"].cpu(), SCORES.abs().neg().exp())


def test_reductions_without_a_name(device):
    half = torch.full((3,), 0.5)
    for reduction in (7, 2**32 + 1):
        single = aten.binary_cross_entropy(half.to(device), half.to(device), None, reduction)
        assert_close(single.cpu(), F.binary_cross_entropy(half, half, reduction="none"))
        arguments = (SCORES, TARGET, 1, 1, None, reduction)
        found = aten.multi_margin_loss_backward(
            torch.ones((), device=device), *(x.to(device) for x in arguments[:2]), *arguments[2:]
        )
        assert_close(found.cpu(), aten.multi_margin_loss_backward(torch.ones(()), *arguments))


@pytest.mark.parametrize("dtype", [torch.float64, torch.uint8], ids=str)
def test_what_the_margins_take(device, dtype):
    for weight, margin in ((torch.ones(4).to(dtype), 1.0), (None, 1e308)):
        words = []
        for d in ("cpu", device):
            scale = weight if weight is None else weight.to(d)
            with pytest.raises(RuntimeError) as refusal:
                F.multi_margin_loss(SCORES.to(d), TARGET.to(d), margin=margin, weight=scale)
            words.append(str(refusal.value).split("\n")[0])
        assert words[1] == words[0]


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
def test_the_input_of_nll_loss_is_no_output(device):
    for which in ("output", "total_weight"):
        x = SCORES.to(device)
        out = {n: x if n == which else x.new_empty(0) for n in ("output", "total_weight")}
        with pytest.raises(IndexError, match="give another tensor"):
            aten.nll_loss_forward.output(x, TARGET.to(device), None, 0, -100, **out)


@pytest.mark.parametrize("bad", [-2, 4])
def test_labels_out_of_range_are_reported(device, bad):
    labels = torch.tensor([[0, -1, bad, 0]] * 3, device=device)
    with pytest.raises(RuntimeError, match="'target' is out of range"):
        F.multilabel_margin_loss(SCORES.to(device), labels).cpu()
