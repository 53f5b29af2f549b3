"""Eigenvalues and singular values: products of the factors, gradients, edges, refusals, limits."""

import pytest
import torch
from torch.testing import assert_close

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(1, 1), (5, 5), (3, 7, 7), (2, 2, 33, 33), (64, 64), (3, 9, 4), (4, 9), (20, 1),
          (100, 30), (2, 0, 3), (0, 3, 3), (3, 0)]  # fmt: skip


def tolerance(dtype):
    single = dtype in (torch.float32, torch.complex64)
    return {"rtol": 1e-4, "atol": 1e-4} if single else {"rtol": 1e-10, "atol": 1e-10}


def general(shape, dtype, seed=3):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def identity(n, like):
    return torch.eye(n, dtype=like.dtype).expand(*like.shape[:-2], -1, -1)


def check_svd(a, device, **options):
    expected = torch.linalg.svd(a, **options)
    u, s, vh = (t.cpu() for t in torch.linalg.svd(a.to(device), **options))
    for f, e in zip((u, s, vh), expected, strict=True):
        assert (f.shape, f.dtype, f.stride()) == (e.shape, e.dtype, e.stride())
    k, bounds = s.shape[-1], tolerance(a.dtype)
    assert_close(s, expected[1], **bounds)
    assert_close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a, **bounds)
    assert_close(u.mH @ u, identity(u.shape[-1], u), **bounds)
    assert_close(vh @ vh.mH, identity(vh.shape[-2], vh), **bounds)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_svd(dtype, device, native):
    for shape in SHAPES:
        a = general(shape, dtype)
        for full_matrices in (True, False):
            check_svd(a, device, full_matrices=full_matrices)
        assert_close(
            torch.linalg.svdvals(a.to(device)).cpu(), torch.linalg.svdvals(a), **tolerance(dtype)
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_svd_of_low_rank(dtype, device, native):
    low = general((2, 12, 3), dtype) @ general((2, 3, 10), dtype, 4)
    same = torch.ones(4, 4, dtype=dtype)
    for a in (low, low.mT, same, torch.zeros(3, 5, dtype=dtype), torch.eye(6, dtype=dtype)[:, :3]):
        for full_matrices in (True, False):
            check_svd(a, device, full_matrices=full_matrices)
    assert torch.linalg.matrix_rank(low.to(device)).tolist() == [3, 3]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh(uplo, dtype, device, native):
    for shape in [s for s in SHAPES if s[-1] == s[-2]]:
        a = general(shape, dtype)  # the other triangle is not read
        expected, basis = torch.linalg.eigh(a, UPLO=uplo)
        values, vectors = (t.cpu() for t in torch.linalg.eigh(a.to(device), UPLO=uplo))
        bounds = tolerance(dtype)
        assert_close(values, expected, **bounds)
        product = (basis * expected.unsqueeze(-2)) @ basis.mH
        assert_close((vectors * values.unsqueeze(-2)) @ vectors.mH, product, **bounds)
        assert_close(vectors.mH @ vectors, identity(shape[-1], vectors), **bounds)
        alone = torch.linalg.eigvalsh(a.to(device), UPLO=uplo)
        assert_close(alone.cpu(), expected, **bounds)


@pytest.mark.parametrize("dtype", DTYPES[1::2], ids=str)
def test_gradients(dtype, device, native):
    def symmetric(x):
        return x[..., :6, :6] + x[..., :6, :6].mH

    # Functions that do not see the signs and phases, which are free.
    calls = [
        torch.linalg.svdvals,
        lambda x: torch.linalg.svd(x, full_matrices=False)[0].abs(),
        lambda x: torch.linalg.svd(x, full_matrices=False)[2].abs(),
        lambda x: torch.linalg.eigvalsh(symmetric(x)),
        lambda x: torch.linalg.eigh(symmetric(x))[1].abs(),
        torch.linalg.pinv, torch.linalg.cond,
        lambda x: torch.linalg.norm(x, 2, (-2, -1)), lambda x: torch.linalg.norm(x, "nuc", (-2, -1)),
        lambda x: torch.linalg.pinv(symmetric(x), hermitian=True),
    ]  # fmt: skip
    for call in calls:
        for shape in ((2, 9, 6), (2, 6, 9)):
            x = general(shape, dtype).requires_grad_()
            y = x.detach().to(device).requires_grad_()
            for t in (x, y):
                call(t).abs().square().sum().backward()
            assert_close(y.grad.cpu(), x.grad)


def test_layouts_and_out(device, native):
    a = general((2, 7, 7), torch.float64)
    expected = torch.linalg.eigvalsh(a), torch.linalg.svdvals(a)
    for layout in (
        lambda x: x.mT.contiguous().mT, lambda x: x.repeat_interleave(2, -1)[..., ::2],
        lambda x: x.to(torch.complex128).conj().real,
    ):  # fmt: skip
        y = layout(a.to(device))
        assert_close(torch.linalg.eigvalsh(y).cpu(), expected[0])
        assert_close(torch.linalg.svdvals(y).cpu(), expected[1])
    out = torch.empty(2, 14, dtype=torch.float64, device=device)[:, ::2]
    torch.linalg.eigvalsh(a.to(device), out=out)
    assert_close(out.cpu(), expected[0])
    torch.linalg.svdvals(a.to(device), out=out)
    assert_close(out.cpu(), expected[1])
    values, vectors = out.new_empty(0), out.new_empty(2, 7, 7)
    torch.linalg.eigh(a.to(device), out=(values, vectors))
    assert_close((vectors * values.unsqueeze(-2) @ vectors.mT).cpu(), a.tril() + a.tril(-1).mT)


def test_users_of_both(device, native):
    a = general((8, 5), torch.float64)
    assert_close(torch.linalg.pinv(a.to(device)).cpu(), torch.linalg.pinv(a))
    assert torch.linalg.matrix_rank(a.to(device)).item() == 5
    u, s, v = torch.svd_lowrank(a.to(device), q=5)
    assert_close((u * s @ v.mT).cpu(), a)
    s = torch.pca_lowrank(a.to(device), q=5)[1]
    assert_close(s.cpu(), torch.linalg.svdvals(a - a.mean(0)))
    u, s, v = torch.svd(a.to(device))
    assert_close((u * s @ v.mT).cpu(), a)


@pytest.mark.parametrize("call", [torch.linalg.svd, torch.linalg.svdvals, torch.linalg.eigh])
def test_nan_is_an_error(call, device, native):
    a = torch.eye(3).expand(2, 3, 3).clone()
    a[1, 2, 0] = torch.nan
    for x in (a, a[1]):
        with pytest.raises(torch.linalg.LinAlgError) as expected:
            call(x)
        with pytest.raises(torch.linalg.LinAlgError) as found:
            call(x.to(device))
        assert str(found.value) == str(expected.value)


def test_infinities_give_nan(device, native):
    a = torch.eye(3)
    a[1, 0] = a[0, 1] = torch.inf
    assert torch.linalg.eigvalsh(a.to(device)).isnan().all()
    assert torch.linalg.svdvals(a.to(device)).isnan().all()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.linalg.svd(x, driver="gesvd"), lambda x: torch.linalg.svd(x[0]),
        lambda x: torch.linalg.eigh(x[:2]), lambda x: torch.linalg.eigh(x, UPLO="X"),
        lambda x: torch.linalg.svd(x.half()), lambda x: torch.linalg.eigh(x.bfloat16()),
        lambda x: torch.linalg.svdvals(x.int()),
    ],
)  # fmt: skip
def test_refusals(call, device, module):
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        call(torch.eye(3))
    with module.fallback.off(), pytest.raises(type(expected.value)) as found:
        call(torch.eye(3, device=device))
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_matrices_above_the_limit_fall_back(device, module):
    module.fallback.reset()
    a = general((65, 65), torch.float64)
    with module.fallback.off():
        assert_close(torch.linalg.svdvals(a.to(device)).cpu(), torch.linalg.svdvals(a))
        assert_close(torch.linalg.eigvalsh(a.to(device)).cpu(), torch.linalg.eigvalsh(a))
    assert {"aten::_linalg_svd", "aten::_linalg_eigh"} <= set(module.fallback.counts())
