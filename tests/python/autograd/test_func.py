"""torch.func on the device: vmap, grad, jvp, jacobians, per-sample gradients, ensembles."""

import copy

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import (
    functional_call,
    functionalize,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
]
SOURCE = torch.Generator().manual_seed(9)


def rand(*shape):
    return torch.randn(shape, generator=SOURCE)


MATRIX, WEIGHT, VECTOR, IMAGE = rand(5, 4), rand(4, 3), rand(4), rand(3, 2, 6, 6)
ROWS = torch.tensor([0, 1, 2, 3, 1])


def same_on_the_device(device, call, *inputs, tolerance=1e-4):
    """The call gives what it gives on the CPU, on the device and without the CPU."""

    def moved(value):
        if isinstance(value, nn.Module):
            return copy.deepcopy(value).to(device)
        return value.to(device) if isinstance(value, torch.Tensor) else value

    expected = call(*inputs)
    with torch.get_device_module(device).fallback.forbid():
        found = call(*tree_map(moved, inputs))
    assert {t.device.type for t in tree_leaves(found)} == {device}
    assert_close(tree_map(torch.Tensor.cpu, found), expected, rtol=tolerance, atol=tolerance)


# What a batch of rows goes through.
ROW = {
    "pointwise": lambda r: (r.sin() * 2).where(r > 0, -r),
    "reductions": lambda r: (r.sum(), r.amax(), r.argmax(), r.var(), r.norm()),
    "scans": lambda r: (r.cumsum(0), r.logcumsumexp(0), r.cummax(0).values),
    "sorts": lambda r: (r.sort().values, r.topk(2).values, r.median()),
    "softmax": lambda r: (r.softmax(0), r.log_softmax(0), F.gelu(r), F.layer_norm(r, (4,))),
    "outer": lambda r: torch.outer(r, r).tril(),
    "indexing": lambda r: (r[ROWS.to(r.device)[:2]], r.flip(0), r.roll(1), r.gather(0, r.argsort())),
    "transform": lambda r: torch.fft.rfft(r).abs(),
}  # fmt: skip
# What a batch of images [2, 6, 6] goes through.
PICTURE = {
    "convolution": lambda i: F.conv2d(i[None], torch.ones(3, 2, 3, 3, device=i.device)),
    "pools": lambda i: (F.max_pool2d(i, 2), F.avg_pool2d(i, 2), F.adaptive_avg_pool2d(i, 3)),
    "norms": lambda i: (F.batch_norm(i[None], None, None, training=True), F.group_norm(i[None], 2)),
    "resizing": lambda i: (F.interpolate(i[None], scale_factor=2), F.pad(i, (1, 1))),
    "distances": lambda i: torch.cdist(i, i + 1),
    "algebra": lambda i: torch.linalg.det(i @ i.mT + torch.eye(6, device=i.device)),
}  # fmt: skip


@pytest.mark.parametrize("name", [*ROW, *PICTURE])
def test_vmap(device, name):
    call, batch = (ROW[name], MATRIX) if name in ROW else (PICTURE[name], IMAGE)
    same_on_the_device(device, vmap(call), batch)
    assert_close(vmap(call, chunk_size=2)(batch.to(device)), vmap(call)(batch.to(device)))


def test_vmap_over_chosen_dimensions(device):
    same_on_the_device(device, vmap(torch.matmul, in_dims=(0, None)), MATRIX, WEIGHT)
    same_on_the_device(device, vmap(torch.mul, in_dims=(1, 0), out_dims=1), MATRIX, MATRIX.t())
    same_on_the_device(device, vmap(vmap(torch.dot)), rand(2, 3, 4), rand(2, 3, 4))
    same_on_the_device(device, vmap(lambda r, i: r[i]), MATRIX, ROWS % 4)
    same_on_the_device(device, vmap(F.embedding), ROWS[:4].reshape(2, 2), rand(2, 4, 3))


@pytest.mark.parametrize("draw", [
    torch.rand_like, lambda r: F.dropout(r + 1), lambda r: torch.bernoulli(torch.full((40,), 0.5, device=r.device)),
    lambda r: torch.randperm(40, device=r.device), lambda r: torch.randint(9, (40,), device=r.device),
    lambda r: torch.multinomial(torch.ones(40, device=r.device), 9),
], ids=["rand", "dropout", "bernoulli", "randperm", "randint", "multinomial"])  # fmt: skip
def test_randomness_of_vmap(device, draw):
    x = torch.zeros(3, 40, device=device)
    different = vmap(draw, randomness="different")(x)
    same = vmap(draw, randomness="same")(x)
    assert not torch.equal(different[0], different[1])
    assert torch.equal(same[0], same[1])
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness"):
        vmap(draw, randomness="error")(x)


def test_vmap_of_attention(device):
    attend = F.scaled_dot_product_attention
    query = rand(3, 2, 4, 5, 8)
    same_on_the_device(device, vmap(lambda q: attend(q, q, q)), query)
    same_on_the_device(device, vmap(grad(lambda q: attend(q, q, q).square().sum())), query)


def test_vmap_of_a_recurrent_cell(device):
    torch.manual_seed(0)
    same_on_the_device(device, lambda m, x: vmap(m)(x), nn.GRUCell(4, 3), rand(2, 5, 4))


TRANSFORMS = {
    "grad": lambda v: grad(lambda x: (x.tanh() * x).square().sum())(v),
    "grad of grad": lambda v: grad(lambda a: grad(lambda b: (b.sin() * b).sum())(a).norm())(v),
    "vjp": lambda v: vjp(lambda x: x.exp() * x, v)[1](torch.ones_like(v)),
    "jvp": lambda v: jvp(lambda x: (x.sin() * x).cumsum(0), (v,), (v.cos(),)),
    "jvp of many": lambda v: jvp(
        lambda x: F.gelu(x).softmax(-1).log() + F.layer_norm(x, (4,)), (v,), (v.cos(),)),
    "linearize": lambda v: linearize(lambda x: x.sin() * 2, v)[1](torch.ones_like(v)),
    "jacrev": lambda v: jacrev(lambda x: torch.outer(x, x).tanh())(v),
    "jacfwd": lambda v: jacfwd(lambda x: torch.outer(x, x).tanh())(v),
    "hessian": lambda v: hessian(lambda x: (x.sin() * x.exp()).sum())(v),
    "functionalize": lambda v: functionalize(lambda x: x.clone().add_(1).view(2, 2).t() * 2)(v),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(device, name):
    same_on_the_device(device, TRANSFORMS[name], VECTOR)


def test_forward_mode_outside_torch_func(device):
    def call(x, tangent):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, tangent)
            return tuple(forward_ad.unpack_dual((dual.sin() @ dual.t()).softmax(1)))

    same_on_the_device(device, call, MATRIX, torch.ones(5, 4))


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def test_gradients_of_every_sample(device):
    def call(model, x):
        parameters = {k: p.detach() for k, p in model.named_parameters()}

        def loss(parameters, sample):
            return functional_call(model, parameters, (sample[None],)).square().mean()

        return vmap(grad(loss), in_dims=(None, 0))(parameters, x)

    same_on_the_device(device, call, network(), MATRIX)


def test_an_ensemble_is_one_call(device):
    def call(x, *models):
        parameters, buffers = stack_module_state(list(models))
        base = copy.deepcopy(models[0]).to("meta")

        def one(parameters, buffers):
            return functional_call(base, (parameters, buffers), (x,))

        return vmap(one)(parameters, buffers).detach()

    torch.manual_seed(2)
    models = [nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval() for _ in range(3)]
    same_on_the_device(device, call, MATRIX, *models)


def test_products_with_the_hessian_of_a_network(device):
    def call(model, x, vector):
        parameters = {k: p.detach() for k, p in model.named_parameters()}

        def slope(weight):
            return grad(lambda w: functional_call(
                model, {**parameters, "0.weight": w}, (x,)).square().mean())(weight)  # fmt: skip

        return jvp(slope, (parameters["0.weight"],), (vector,))[1]

    same_on_the_device(device, call, network(), MATRIX, rand(8, 4))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_traces_of_make_fx(device, mode):
    x, weight = MATRIX.to(device), WEIGHT.to(device)
    traced = make_fx(grad(lambda w, x: (x @ w).relu().sum()), tracing_mode=mode)(weight, x)
    assert "aten.mm" in traced.code
    assert_close(traced(weight, x).cpu(), grad(lambda w, x: (x @ w).relu().sum())(WEIGHT, MATRIX))


def test_what_forward_mode_lacks_is_an_error_as_on_the_cpu(device):
    query = rand(1, 2, 4, 8).to(device)
    with pytest.raises(NotImplementedError, match="forward AD with _scaled_dot_product"):
        jvp(lambda q: F.scaled_dot_product_attention(q, q, q), (query,), (query,))
