"""The counted CPU fallback: views, in-place, out=, lists, optionals, random; its policy."""

import warnings

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from sandbox import ROOT, build_c

pytestmark = pytest.mark.both_modes

OPS = {
    "plain(Tensor x, float factor) -> Tensor": lambda x, factor: x * factor,
    "inplace_(Tensor(a!) x) -> Tensor(a!)": lambda x: x.add_(1),
    "out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)": lambda x, *, out: out.resize_(x.shape).copy_(
        x * 3
    ),
    "lists(Tensor[] xs) -> Tensor[]": lambda xs: [x + i for i, x in enumerate(xs)],
    "optional(Tensor? x, Tensor y) -> Tensor": lambda x, y: y * 2 if x is None else x + y,
    "pair(Tensor x) -> (Tensor, Tensor)": lambda x: (x + 1, x.sum().long()),
    "optionals(Tensor?[] xs) -> Tensor": lambda xs: sum(x for x in xs if x is not None) * 1,
    "inplace_list_(Tensor(a!)[] xs) -> ()": lambda xs: [x.mul_(5) for x in xs] and None,
    "number(Tensor x) -> float": lambda x: float(x.sum()),
    "nothing(Tensor x) -> Tensor?": lambda x: None,
    "fails(Tensor x) -> Tensor": lambda x: x.view(-7),
}
_library = torch.library.Library("graft_fallback_test", "DEF")
for _schema, _function in OPS.items():
    _library.define(_schema)
    _library.impl(_schema.split("(")[0], _function, "CPU")
ops = torch.ops.graft_fallback_test


@pytest.fixture
def counts(device, module):
    """The counters, from zero."""
    module.fallback.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield module.fallback


def calls(counts, name):
    return counts.counts().get(f"graft_fallback_test::{name}", None)


def test_plain_call_is_counted(device, counts):
    x = torch.arange(4.0, device=device)
    assert ops.plain(x, 2.0).tolist() == [0, 2, 4, 6]
    assert ops.plain(x[::2], 3.0).device == x.device
    found = calls(counts, "plain")
    assert found.calls == 2
    assert found.bytes >= 0
    assert found.seconds > 0
    assert counts.total() == 2
    counts.reset()
    assert (counts.counts(), counts.total()) == ({}, 0)


def test_views_in_place_and_out(device, counts):
    x = torch.zeros(4, 6, device=device)
    column = x[:, 1]
    assert ops.inplace_(column).data_ptr() == column.data_ptr()
    ops.inplace_(x.t()[2:4])
    expected = torch.zeros(4, 6)
    expected[:, 1] += 1
    expected[:, 2:4] += 1
    assert x.cpu().equal(expected)
    out = torch.empty(0, device=device)
    address = ops.out(x, out=out)
    assert address is out or address.data_ptr() == out.data_ptr()
    assert out.cpu().equal(expected * 3)
    wide = torch.zeros(4, 12, device=device)
    ops.out(x, out=wide[:, ::2])
    assert wide[:, ::2].cpu().equal(expected * 3)
    assert not wide[:, 1::2].any().item()


def test_lists_and_optionals(device, counts):
    x, y = torch.ones(2, 3, device=device)
    host = torch.tensor(1.0)
    assert [t.tolist() for t in ops.lists([x, y])] == [[1, 1, 1], [2, 2, 2]]
    assert ops.optional(None, y).tolist() == [2, 2, 2]
    assert ops.optional(x, y).device == x.device
    assert ops.optional(host, y).tolist() == [2, 2, 2]
    assert ops.optionals([None, x, y]).tolist() == [2, 2, 2]
    first, total = ops.pair(x)
    assert (first.device, total.device, total.item()) == (x.device, x.device, 3)
    ops.inplace_list_([x, y[1:]])
    assert (x.tolist(), y.tolist()) == ([5, 5, 5], [1, 5, 5])
    assert ops.number(x) == 15
    assert ops.nothing(x) is None


def test_arguments_that_share_memory(device, counts):
    x = torch.arange(12.0, device=device)
    a, b = x[:8], x[4:]
    ops.inplace_list_([a, b])
    assert x.tolist() == [5.0 * i for i in range(4)] + [25.0 * i for i in range(4, 8)] + [
        5.0 * i for i in range(8, 12)
    ]
    square = torch.arange(9.0, device=device).reshape(3, 3)
    ops.out(square, out=square)
    assert square.sum().item() == 108
    ops.out(square.t(), out=square.view(3, 3).t())
    assert square.flatten().tolist() == [9.0 * i for i in range(9)]


def test_arguments_that_share_memory_of_a_device_without_host_views(python, tmp_path):
    found = python(
        """
        library = torch.library.Library("graft_fallback_test", "DEF")
        library.define("inplace_list_(Tensor(a!)[] xs) -> ()")
        library.impl("inplace_list_", lambda xs: [x.mul_(5) for x in xs] and None, "CPU")
        x = torch.arange(12.0).to(D)
        torch.ops.graft_fallback_test.inplace_list_([x[:8], x[4:], x[4:8].view(2, 2)])
        y = torch.arange(1.0, 17).reshape(4, 4).sin()
        p, l, u = (t.cpu() for t in torch.linalg.lu(y.to(D)))
        print(json.dumps([x.tolist(), (p @ l @ u - y).abs().max().item()]))
        """,
        GRAFT_DRIVER_PATH=build_c(
            tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text()
        ),
        GRAFT_DEVICES="tiny",
    ).value()
    factors = [5] * 4 + [125] * 4 + [5] * 4
    assert found[0] == [float(i * factor) for i, factor in enumerate(factors)]
    assert found[1] < 1e-5


def test_operators_of_torch_with_out_arguments_that_are_inputs(device, counts):
    for shape in ((4, 4), (3, 4, 4), (5, 3), (3, 5)):
        x = torch.randn(shape, dtype=torch.float64)
        for found, expected in zip(torch.linalg.lu(x.to(device)), torch.linalg.lu(x), strict=True):
            torch.testing.assert_close(found.cpu(), expected)
    x = torch.randn(3, 3)
    for t in (x, x * 9):
        torch.testing.assert_close(torch.matrix_exp(t.to(device)).cpu(), torch.matrix_exp(t))


def test_tensors_of_the_cpu_are_refused(device, second, counts):
    x, host = torch.ones(2, 2, device=device), torch.ones(2, 2)
    for call in (lambda: ops.optional(host, x), lambda: ops.optional(x, host),
                 lambda: ops.lists([x, host]), lambda: ops.out(x, out=host),
                 lambda: torch.linalg.solve(x, host), lambda: torch.linalg.solve(host, x),
                 lambda: ops.optional(x, x.to(second))):  # fmt: skip
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call()


def test_cpu_arguments_that_torch_allows(device, counts):
    x = torch.arange(12.0).reshape(4, 3)
    y = x.to(device)
    rows = torch.tensor([1, 3])
    assert [t.tolist() for t in torch.tensor_split(y, rows)] == [
        t.tolist() for t in torch.tensor_split(x, rows)
    ]
    assert y[rows].tolist() == y[rows.to(device)].tolist() == x[rows].tolist()
    assert y[x > 4].tolist() == x[x > 4].tolist()
    y[rows] = torch.tensor(7.0)
    assert y[rows].unique().tolist() == [7]
    assert ops.optionals([None, rows, rows.to(device)]).tolist() == [2, 6]
    log_probs = torch.randn(5, 2, 4).log_softmax(2)
    targets, lengths = torch.tensor([[1, 2], [3, 1]]), torch.tensor([5, 5])
    call = torch.nn.functional.ctc_loss
    expected = call(log_probs, targets, lengths, torch.tensor([2, 2]))
    found = call(log_probs.to(device), targets, lengths, torch.tensor([2, 2]))
    torch.testing.assert_close(found.cpu(), expected)


def test_error_inside_is_passed_on(device, counts):
    with pytest.raises(RuntimeError, match="invalid shape dimension -7"):
        ops.fails(torch.ones(3, device=device))
    assert ops.plain(torch.ones(3, device=device), 2.0).sum().item() == 6


def test_second_device(device, second, counts):
    x = torch.ones(3, device=second)
    assert ops.plain(x, 2.0).device == x.device


def test_operators_of_torch(device, counts):
    x = torch.tensor([[4.0, 1.0], [2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    y = x.detach().to(device).requires_grad_()
    for t in (x, y):
        torch.linalg.solve(t, torch.ones_like(t)).sum().backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad)
    values, vectors = torch.linalg.eig(y.detach())
    found = vectors * values @ vectors.inverse()
    torch.testing.assert_close(found.real.cpu(), x.detach())
    assert counts.total() > 0


def test_random_operators_leave_the_cpu_s_generator(device, counts):
    host = torch.get_rng_state()
    x = torch.full((50,), 9.0, device=device)
    draws = [lambda: torch.poisson(x), lambda: torch.binomial(x, x / 20),
             lambda: torch._standard_gamma(x), lambda: torch.rrelu(-x, training=True)]  # fmt: skip
    for draw in draws:
        torch.get_device_module(device).manual_seed(3)
        first = draw()
        torch.get_device_module(device).manual_seed(3)
        assert first.equal(draw())
    assert torch.get_rng_state().equal(host)


def test_dropout_of_nothing_draws_nothing(device, counts):
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    inputs = [torch.randn(2, 3, 4, 8) for _ in range(3)]
    state = torch.random.get_rng_state()
    with sdpa_kernel(SDPBackend.MATH):  # so that the device's kernel is left out
        found, _ = attend(*(x.to(device) for x in inputs), 0.0, True)
    torch.testing.assert_close(found.cpu(), attend(*inputs, 0.0, True)[0])
    assert "aten::_scaled_dot_product_flash_attention_for_cpu" in counts.counts()
    with pytest.raises(RuntimeError, match="draws random numbers"):
        attend(*(x.to(device) for x in inputs), 0.5, True)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_warns_once_per_operator(python):
    ran = python(
        """
        x = torch.ones(3, 3, device=D)
        for _ in range(3):
            torch.linalg.eigvals(x)
            torch.linalg.matrix_exp(x)
        """,
        GRAFT_FALLBACK="warn",
    ).good()
    for name in ("eigvals", "matrix_exp"):
        lines = [line for line in ran.err.splitlines() if name in line and "Warning" in line]
        assert len(lines) == 1, ran.err


def test_forbidden(device, counts, python):
    x = torch.ones(3, device=device)
    with counts.forbid():
        with pytest.raises(RuntimeError, match=r"plain(.|\n)*(GRAFT_FALLBACK|forbid)"):
            ops.plain(x, 2.0)
        assert (x + 1).tolist() == [2, 2, 2]
        with pytest.raises(KeyError), counts.forbid():
            raise KeyError
        with pytest.raises(RuntimeError):
            ops.plain(x, 2.0)
    assert ops.plain(x, 2.0).tolist() == [2, 2, 2]
    ran = python("torch.linalg.eig(torch.ones(2, 2, device=D))", GRAFT_FALLBACK="forbid")
    assert ran.code == 1
    assert "linalg_eig" in ran.err


def test_quiet(python):
    code = "torch.linalg.eig(torch.ones(2, 2, device=D))"
    assert python(code, GRAFT_FALLBACK="off").good().err == ""


def test_unknown_policy(python):
    ran = python("print(torch.ones(2, device=D).tolist())", GRAFT_FALLBACK="sometimes").good()
    assert "[1.0, 1.0]" in ran.out
    assert "sometimes" in ran.err
    assert "forbid" in ran.err
