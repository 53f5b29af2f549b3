"""Autocast regions: custom functions, nesting, threads, the cache of cast weights, custom operators."""

import threading
import warnings

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

HALF, BRAIN, FULL = torch.float16, torch.bfloat16, torch.float32


def square(device, dtype=FULL, **options):
    return torch.ones(4, 4, device=device, dtype=dtype, **options)


def product(device, seen, **options):
    """A matrix product as an autograd function that notes what it was called with."""

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, **options)
        def forward(ctx, a, b, extra=None):
            ctx.save_for_backward(a, b)
            seen["forward"] = (a.dtype, b.dtype, torch.is_autocast_enabled(device))
            seen["extra"] = extra
            return a.mm(b)

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)
        def backward(ctx, gradient):
            a, b = ctx.saved_tensors
            seen["backward"] = (gradient.dtype, torch.is_autocast_enabled(device),
                                torch.get_autocast_dtype(device))  # fmt: skip
            return gradient.mm(b.t()), a.t().mm(gradient), None

    return Product.apply


def test_inputs_are_cast_and_autocast_is_off_inside(device):
    seen = {}
    a, b = square(device, HALF, requires_grad=True), square(device, requires_grad=True)
    double, whole = torch.ones(2, device=device).double(), torch.ones(2, device=device).int()
    extra = {"list": [torch.ones(2, device=device).half(), double], "whole": whole,
             "elsewhere": torch.ones(2).half(), "text": "as it is"}  # fmt: skip
    with torch.autocast(device):
        out = product(device, seen, cast_inputs=FULL)(a, b, extra)
    out.sum().backward()
    assert seen["forward"] == (FULL, FULL, False)
    assert seen["backward"][:2] == (FULL, False)
    cast = seen["extra"]
    assert [t.dtype for t in cast["list"]] == [FULL, torch.float64]
    assert (cast["whole"].dtype, cast["elsewhere"].dtype) == (torch.int32, HALF)
    assert cast["text"] == "as it is"
    assert (out.dtype, a.grad.dtype, b.grad.dtype) == (FULL, HALF, FULL)
    assert_close(a.grad, torch.full_like(a, 4))


def test_outside_a_region_nothing_is_cast(device):
    seen = {}
    a, b = square(device, HALF, requires_grad=True), square(device, HALF)
    out = product(device, seen, cast_inputs=FULL)(a, b)
    out.sum().backward()
    assert (seen["forward"], out.dtype) == ((HALF, HALF, False), HALF)
    assert seen["backward"][1] is False


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
def test_backward_runs_in_the_state_of_forward(device, dtype):
    """Wherever backward is called: autograd's threads know no region of the caller's."""
    seen = {}
    a, b = square(device, requires_grad=True), square(device, requires_grad=True)
    with torch.autocast(device, dtype=dtype):
        out = product(device, seen)(a, b)
        assert seen["forward"] == (FULL, FULL, True)
    assert out.dtype == dtype
    with torch.autocast(device, dtype=BRAIN if dtype == HALF else HALF):
        out.sum().backward()
    assert seen["backward"] == (dtype, True, dtype)
    assert_close(a.grad, torch.full_like(a, 4))
    with torch.autocast(device, dtype=dtype, enabled=False):
        plain = product(device, seen)(a, b)
    with torch.autocast(device, dtype=dtype):
        plain.sum().backward()
    assert seen["backward"][:2] == (FULL, False)


def test_decorators_want_the_device_type(device):
    for decorate in (torch.amp.custom_fwd, torch.amp.custom_bwd, torch.autocast):
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            decorate(device_type=torch.device(device))


def test_regions_nest_and_end(device):
    a = square(device)
    assert not torch.is_autocast_enabled(device)
    with torch.autocast(device):
        assert (a @ a).dtype == HALF
        with torch.autocast(device, dtype=BRAIN):
            assert (a @ a).dtype == BRAIN
            with torch.autocast(device, enabled=False):
                assert (a @ a).dtype == FULL
            with pytest.raises(ZeroDivisionError), torch.autocast(device, dtype=HALF):
                raise ZeroDivisionError
            assert (a @ a).dtype == BRAIN
        assert (a @ a).dtype == HALF
        with torch.autocast("cpu", dtype=BRAIN):  # each device type has its own state
            assert ((a @ a).dtype, (a.cpu() @ a.cpu()).dtype) == (HALF, BRAIN)
    assert not torch.is_autocast_enabled(device)
    assert (a @ a).dtype == FULL


def test_regions_belong_to_a_thread(device):
    seen = []

    def look():
        seen.append((torch.is_autocast_enabled(device), (square(device) @ square(device)).dtype))

    with torch.autocast(device):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        look()
    assert seen == [(False, FULL), (True, HALF)]


def test_as_a_decorator(device):
    @torch.autocast(device, dtype=BRAIN)
    def multiply(a):
        return a @ a

    assert multiply(square(device)).dtype == BRAIN
    assert not torch.is_autocast_enabled(device)


def test_state_by_function(device):
    assert torch.amp.is_autocast_available(device)
    assert torch.get_autocast_dtype(device) == HALF
    try:
        torch.set_autocast_dtype(device, BRAIN)
        torch.set_autocast_enabled(device, True)
        assert (square(device) @ square(device)).dtype == BRAIN
        with torch.autocast(device):
            assert (square(device) @ square(device)).dtype == BRAIN
    finally:
        torch.set_autocast_enabled(device, False)
        torch.set_autocast_dtype(device, HALF)
        torch.clear_autocast_cache()


def test_another_dtype_is_refused_with_a_warning(device):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        region = torch.autocast(device, dtype=torch.float64)
    assert any("target dtype is not supported. Disabling autocast" in str(w.message) for w in seen)
    with region:
        assert (square(device) @ square(device)).dtype == FULL


def launches(module, run):
    module.synchronize()
    before = module.statistics()["launches"]
    run()
    module.synchronize()
    return module.statistics()["launches"] - before


def test_weights_are_cast_once_in_a_region(device, module, native):
    weight, x = square(device, requires_grad=True), square(device, HALF)
    counts = []
    for cached in (True, False):
        with torch.autocast(device, cache_enabled=cached):
            counts.append([launches(module, lambda: x @ weight) for _ in range(3)])
    assert counts[0] == [2, 1, 1]  # a cast and a product, then products
    assert counts[1] == [2, 2, 2]
    with torch.autocast(device):
        assert launches(module, lambda: x @ weight) == 2, "the cache ends with the region"
        with torch.autocast(device):
            assert launches(module, lambda: x @ weight) == 1, "an inner region shares it"
        torch.clear_autocast_cache()
        assert launches(module, lambda: x @ weight) == 2
        inner = square(device)  # needs no gradient: not kept
        assert [launches(module, lambda: inner @ x) for _ in range(2)] == [2, 2]


def test_the_cache_lets_go_of_its_memory(device, allocated):
    weight, x = torch.ones(512, 4, device=device, requires_grad=True), square(device, HALF)
    before = allocated()
    with torch.autocast(device):
        weight @ x
        assert allocated() >= before + 512 * 4 * 2
    assert allocated() == before


def test_a_weight_that_was_first_used_without_gradients_still_gets_one(device):
    layer, x = nn.Linear(4, 4).to(device), square(device)
    with torch.autocast(device):
        with torch.no_grad():
            layer(x)
        layer(x).float().sum().backward()
    assert_close(layer.weight.grad, torch.full_like(layer.weight, 4))


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputation_casts_as_the_forward_did(device, reentrant):
    gradients = []
    for again in (True, False):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)).to(device)
        x = torch.randn(2, 8).to(device).requires_grad_()
        with torch.autocast(device, dtype=BRAIN):
            out = checkpoint(model, x, use_reentrant=reentrant) if again else model(x)
        assert out.dtype == BRAIN
        out.float().sum().backward()
        gradients.append([x.grad, *(p.grad for p in model.parameters())])
    assert_close(*gradients, rtol=0, atol=0)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_modules(device, kind):
    torch.manual_seed(0)
    model, x = kind(4, 5, 2, bidirectional=True), torch.randn(3, 2, 4)
    expected, _ = model(x)
    model, x = model.to(device), x.to(device).requires_grad_()
    with torch.autocast(device):
        out, _ = model(x)
    out.float().sum().backward()
    assert out.dtype == HALF
    assert_close(out.float().cpu(), expected, rtol=1e-2, atol=1e-2)
    assert x.grad.dtype == FULL
    assert {p.grad.dtype for p in model.parameters()} == {FULL}


def test_custom_operators_say_how_they_are_cast(device):
    with torch.library._scoped_library("graft_autocast_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        torch.library.register_autocast("graft_autocast_test::twice", device, BRAIN, lib=library)
        twice = torch.ops.graft_autocast_test.twice
        with torch.autocast(device):
            assert twice(square(device)).dtype == BRAIN
            assert twice(square("cpu")).dtype == FULL
        assert twice(square(device)).dtype == FULL


def test_module_of_the_old_name(device, module):
    """torch.cuda.amp with the device's name changed."""
    with module.amp.autocast():
        assert (square(device) @ square(device)).dtype == HALF
        with module.amp.autocast(enabled=False):
            assert (square(device) @ square(device)).dtype == FULL
        with module.amp.autocast(dtype=BRAIN, cache_enabled=False):
            assert (square(device) @ square(device)).dtype == BRAIN
            assert not torch.is_autocast_cache_enabled()

    class Twice(torch.autograd.Function):
        @staticmethod
        @module.amp.custom_fwd(cast_inputs=FULL)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @module.amp.custom_bwd
        def backward(ctx, gradient):
            return gradient * 2

    x = square(device, HALF, requires_grad=True)
    with module.amp.autocast():
        out = Twice.apply(x)
    out.sum().backward()
    assert (out.dtype, x.grad.dtype) == (FULL, HALF)
