"""Sparse tensors of every layout: made, converted, computed with, differentiated; compared with the CPU."""

import pytest
import torch

LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def matrix(rows=6, columns=8, dtype=torch.float32, seed=0):
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    return (values * (values > 0.3)).to(dtype)


def as_layout(dense, layout):
    blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=blocks)


def same(device, cpu):
    """Layout, positions and values."""
    assert device.device.type == "graft"
    assert device.layout == cpu.layout
    assert device.shape == cpu.shape
    assert device.dtype == cpu.dtype
    if device.layout == torch.sparse_coo:
        assert device.is_coalesced() == cpu.is_coalesced()
        device, cpu = device.coalesce(), cpu.coalesce()
        assert device.indices().cpu().equal(cpu.indices())
        torch.testing.assert_close(device.values().cpu(), cpu.values())
    elif device.layout == torch.strided:
        torch.testing.assert_close(device.cpu(), cpu)
    else:
        torch.testing.assert_close(device.to_dense().cpu(), cpu.to_dense())
        assert device._nnz() == cpu._nnz()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int64, torch.bool, torch.complex64], ids=str
)
def test_dense_to_sparse_and_back(layout, dtype):
    dense = matrix(dtype=dtype)
    sparse = as_layout(dense.to("graft"), layout)
    same(sparse, as_layout(dense, layout))
    assert sparse.to_dense().cpu().equal(dense)
    assert sparse.cpu().to_dense().equal(dense)
    same(as_layout(dense, layout).to("graft"), as_layout(dense, layout))


@pytest.mark.parametrize("source", LAYOUTS[:3], ids=str)
@pytest.mark.parametrize("target", LAYOUTS[:3], ids=str)
def test_conversions(source, target):
    dense = matrix()
    same(
        as_layout(as_layout(dense.to("graft"), source), target),
        as_layout(as_layout(dense, source), target),
    )


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dense_shape", [(), (2,)], ids=str)
def test_coalesce_sums_equal_positions(shape, dense_shape):
    generator = torch.Generator().manual_seed(1)
    indices = torch.stack([torch.randint(n, (40,), generator=generator) for n in shape])
    values = torch.randn(40, *dense_shape, generator=generator)
    cpu = torch.sparse_coo_tensor(indices, values, shape + dense_shape)
    device = torch.sparse_coo_tensor(indices.to("graft"), values.to("graft"), shape + dense_shape)
    same(device, cpu)
    again = device.coalesce().values()
    assert device.coalesce().values().equal(again)  # the same bits every time


def test_empty_and_single_elements():
    for count in (0, 1):
        indices = torch.zeros(2, count, dtype=torch.int64)
        cpu = torch.sparse_coo_tensor(indices, torch.ones(count), (3, 4))
        same(cpu.to("graft").coalesce(), cpu.coalesce())
        assert cpu.to("graft").to_dense().cpu().equal(cpu.to_dense())


@pytest.mark.parametrize("function", [
    lambda d, s, t: d + s, lambda d, s, t: torch.add(d, s, alpha=-2), lambda d, s, t: s + t,
    lambda d, s, t: torch.sub(s, t), lambda d, s, t: s * 3, lambda d, s, t: s.neg().abs().sqrt(),
    lambda d, s, t: s.sin(), lambda d, s, t: s.transpose(0, 1), lambda d, s, t: s.sum(),
    lambda d, s, t: torch.sparse.sum(s, 0), lambda d, s, t: s @ d.t(), lambda d, s, t: torch.mv(s, d[0]),
    lambda d, s, t: torch.addmm(d @ d.t(), s, d.t(), beta=0.5, alpha=2), lambda d, s, t: s * t,
    lambda d, s, t: s.index_select(0, torch.tensor([2, 0], device=d.device)),
    lambda d, s, t: d.sparse_mask(s), lambda d, s, t: torch.cat([s, t]), lambda d, s, t: s.unsqueeze(0),
    lambda d, s, t: torch.sparse.softmax(s, 1), lambda d, s, t: s @ t.transpose(0, 1),
    lambda d, s, t: s.clone().zero_(), lambda d, s, t: s.to(torch.float64), lambda d, s, t: s.norm(),
], ids=[
    "dense + sparse", "dense - 2 sparse", "sparse + sparse", "sub", "scale", "unary", "sin", "transpose", "sum",
    "sum dim", "matmul", "mv", "addmm", "mul", "index_select", "sparse_mask", "cat", "unsqueeze", "softmax",
    "sparse matmul", "zero", "cast", "norm",
])  # fmt: skip
def test_coo_operators(function):
    dense, one, two = matrix(seed=1), matrix(seed=2), matrix(seed=3)
    moved = [x.to("graft") for x in (dense, one, two)]
    expected = function(dense, one.to_sparse(), two.to_sparse())
    same(function(moved[0], moved[1].to_sparse(), moved[2].to_sparse()), expected)


@pytest.mark.parametrize("function", [
    lambda s, d: s @ d.t(), lambda s, d: s * 2, lambda s, d: s.sin(), lambda s, d: s + s,
    lambda s, d: torch.sparse.sampled_addmm(s, d, d.t() @ d), lambda s, d: s.sum(),
    lambda s, d: torch.sparse.mm(s, d.t(), "mean"), lambda s, d: torch.mv(s, d[0]),
], ids=["matmul", "scale", "sin", "add", "sampled_addmm", "sum", "mm reduce", "mv"])  # fmt: skip
def test_csr_operators(function):
    dense, one = matrix(8, 8, seed=1), matrix(8, 8, seed=2)
    expected = function(one.to_sparse_csr(), dense)
    same(function(one.to("graft").to_sparse_csr(), dense.to("graft")), expected)


def test_gradients_reach_dense_and_sparse_leaves():
    grads = {}
    for device in ("cpu", "graft"):
        weight = matrix(seed=4).to(device).requires_grad_()
        sparse = matrix(6, 6, seed=5).to(device).to_sparse().requires_grad_()
        (torch.sparse.mm(sparse, weight) ** 2).sum().backward()
        grads[device] = (weight.grad, sparse.grad.to_dense())
    for device, cpu in zip(grads["graft"], grads["cpu"], strict=True):
        torch.testing.assert_close(device.cpu(), cpu)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_gradients_of_a_product_that_falls_back(reduce):
    grads = {}
    for device in ("cpu", "graft"):
        sparse = matrix(6, 6, seed=5).to(device).to_sparse_csr().requires_grad_()
        weight = matrix(seed=4).to(device).requires_grad_()
        (torch.sparse.mm(sparse, weight, reduce) ** 2).sum().backward()
        grads[device] = (weight.grad, sparse.grad.to_dense())
    for device, cpu in zip(grads["graft"], grads["cpu"], strict=True):
        torch.testing.assert_close(device.cpu(), cpu)


def test_embeddings_with_sparse_gradients_train():
    tables = {}
    for device in ("cpu", "graft"):
        torch.manual_seed(0)
        table = torch.nn.Embedding(20, 3, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            table(torch.tensor([1, 7, 1, step], device=device)).square().sum().backward()
            assert table.weight.grad.is_sparse
            optimizer.step()
        tables[device] = table.weight.detach().cpu()
    torch.testing.assert_close(tables["graft"], tables["cpu"])


@pytest.mark.parametrize("case", [
    lambda d: torch.sparse_coo_tensor(torch.tensor([[0, 9]], device=d), torch.ones(2, device=d), (3,)),
    lambda d: matrix().to(d).to_sparse() + matrix(3, 3).to(d).to_sparse(),
    lambda d: matrix().to(d).to_sparse() + matrix().to(d),
    lambda d: matrix().to(d) + matrix(3, 3).to(d).to_sparse(),
    lambda d: matrix().to(d).to_sparse() @ matrix(3, 3).to(d),
], ids=["index", "sizes", "sparse + dense", "dense + sparse sizes", "product"])  # fmt: skip
def test_wrong_inputs_are_refused_as_on_the_cpu(case):
    with torch.sparse.check_sparse_tensor_invariants():
        with pytest.raises(RuntimeError) as cpu:
            case("cpu")
        with pytest.raises(RuntimeError) as device:
            case("graft")
    assert str(device.value).split("\n")[0] == str(cpu.value).split("\n")[0]
    assert (torch.ones(2, device="graft") + 1).sum() == 4


def test_a_sparse_tensor_prints_and_moves_back():
    sparse = matrix(2, 3).to("graft").to_sparse()
    assert "device='graft:0'" in repr(sparse)
    assert "layout=torch.sparse_coo" in repr(sparse)
    assert sparse.cpu().device.type == "cpu"
    target = torch.zeros(2, 3, device="graft").to_sparse()
    target.copy_(sparse)
    same(target, sparse.cpu())
