"""Same seed, same bits: again, in any mode, with any number of threads; and the precision settings."""

import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.both_modes

# Operators that PyTorch lists as not deterministic on some device, and sums that threads share.
OPERATORS = {
    "index_add": lambda x, i: torch.zeros(50, 33, device=x.device).index_add_(0, i, x),
    "scatter_add": lambda x, i: torch.zeros_like(x).scatter_add_(0, i[:, None].expand_as(x), x),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None].expand_as(x), x, "prod"),
    "index_put": lambda x, i: torch.zeros_like(x).index_put_((i,), x, accumulate=True),
    "put_": lambda x, i: torch.zeros_like(x).put_(i, x[:, 0], accumulate=True),
    "embedding": lambda x, i: gradient(lambda w: torch.nn.functional.embedding(i, w), x),
    "embedding_bag": lambda x, i: gradient(lambda w: torch.nn.functional.embedding_bag(i.view(40, 50), w), x),
    "bincount": lambda x, i: torch.bincount(i, x[:, 0]),
    "histc": lambda x, i: x.histc(20),
    "cumsum": lambda x, i: x.cumsum(0),
    "kthvalue": lambda x, i: x.kthvalue(7, 0).values,
    "median": lambda x, i: x.median(0).values,
    "upsample": lambda x, i: gradient(lambda y: torch.nn.functional.interpolate(y.view(1, 20, 100, 33), scale_factor=2.5, mode="bilinear"), x),
    "max_pool": lambda x, i: gradient(lambda y: torch.nn.functional.max_pool2d(y.view(1, 20, 100, 33), 3, 2), x),
    "adaptive_avg_pool": lambda x, i: gradient(lambda y: torch.nn.functional.adaptive_avg_pool2d(y.view(1, 20, 100, 33), 7), x),
    "pad": lambda x, i: gradient(lambda y: torch.nn.functional.pad(y.view(1, 20, 100, 33), (3, 2, 1, 4), mode="reflect"), x),
    "grid_sample": lambda x, i: gradient(lambda y: torch.nn.functional.grid_sample(y.view(1, 20, 100, 33), y.view(-1)[:800].view(1, 20, 20, 2), align_corners=False), x),
    "nll_loss": lambda x, i: gradient(lambda y: torch.nn.functional.cross_entropy(y, i % 33), x),
    "sum": lambda x, i: x.sum(), "norm": lambda x, i: x.norm(), "layer_norm": lambda x, i: torch.nn.functional.layer_norm(x, (33,)),
    "coalesce": lambda x, i: torch.sparse_coo_tensor(i[None], x, (2000, 33)).coalesce().values(),
    "dropout": lambda x, i: torch.nn.functional.dropout(x, 0.3), "randn": lambda x, i: torch.randn_like(x),
    "randperm": lambda x, i: torch.randperm(5000, device=x.device),
    "multinomial": lambda x, i: x.exp().multinomial(9),
    "matmul": lambda x, i: x.t() @ x,
}  # fmt: skip


def gradient(function, x):
    x = x.detach().requires_grad_()
    function(x).square().sum().backward()
    return x.grad


def results():
    torch.manual_seed(11)
    x = torch.randn(2000, 33, device="graft")
    i = torch.randint(0, 50, (2000,), device="graft")
    found = {}
    for name, function in OPERATORS.items():
        torch.manual_seed(5)
        found[name] = function(x, i).cpu()
    return found


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_nothing_is_refused_and_bits_repeat(deterministic):
    first, second = results(), results()
    for name in OPERATORS:
        assert first[name].equal(second[name]), name


@pytest.mark.parametrize("settings", [
    {"GRAFT_HOST_MODE": "async", "GRAFT_HOST_THREADS": "1"}, {"GRAFT_HOST_MODE": "async", "GRAFT_HOST_THREADS": "5"},
    {"GRAFT_HOST_MODE": "inline", "GRAFT_HOST_THREADS": "2"},
], ids=["1 thread", "5 threads", "inline"])  # fmt: skip
def test_bits_do_not_depend_on_threads_or_mode(settings, tmp_path):
    path = tmp_path / "results.pt"
    code = f"import sys, torch; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    code += f"from test_determinism import results; torch.save(results(), {str(path)!r})"
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **settings}, check=True, timeout=250
    )
    here, there = results(), torch.load(path)
    for name in OPERATORS:
        # The driver's library may cut the long sum elsewhere: see docs/use/determinism.md.
        if name == "matmul":
            # Sums of 2000 products near 1: one rounding of each, and sums that cancel have no relative bound.
            torch.testing.assert_close(here[name], there[name], rtol=1.3e-6, atol=2000 * 2.0**-24)
        else:
            assert here[name].equal(there[name]), name


def test_new_memory_is_filled(deterministic):
    assert torch.empty(5, device="graft").isnan().all()
    assert torch.empty(5, device="graft", dtype=torch.int32).eq(2**31 - 1).all()
    assert torch.empty(3, device="graft").resize_(9).isnan().all()


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_matmul_precision_never_loses_float32(precision):
    x = torch.randn(300, 400, generator=torch.Generator().manual_seed(0))
    exact = (x.double() @ x.double().t()).float()
    before = torch.get_float32_matmul_precision()
    found = {}
    try:
        for name in ("highest", precision):
            torch.set_float32_matmul_precision(name)
            found[name] = (x.to("graft") @ x.to("graft").t()).cpu()
    finally:
        torch.set_float32_matmul_precision(before)
    assert found[precision].equal(found["highest"])
    # Sums of 400 products: 2^-24 for each in the worst case, far from bfloat16's 2^-9.
    torch.testing.assert_close(found[precision], exact, rtol=1.3e-6, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_products_sum_in_float32(dtype):
    """Whatever an application permits: a half type would stop growing long before the sum."""
    x = torch.full((4, 8192), 0.01, dtype=dtype)
    exact = (x.double() @ x.double().t()).to(dtype)
    assert (x.to("graft") @ x.to("graft").t()).cpu().equal(exact)
