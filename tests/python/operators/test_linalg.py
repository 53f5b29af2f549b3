"""Batched linear algebra against the CPU: values, layouts, gradients, out=, info, errors."""

import warnings

import pytest
import torch
from torch.testing import assert_close

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(0, 0), (0, 3, 3), (2, 0, 0), (1, 1), (7, 7), (3, 7, 7), (2, 2, 33, 33), (100, 100)]

LAYOUTS = {
    "contiguous": lambda x: x.clone(),
    "transposed": lambda x: x.mT.clone().mT,
    "stepped": lambda x: x.repeat_interleave(2, -1).repeat_interleave(2, -2)[..., ::2, ::2],
}

# name -> function of (general, positive definite, right-hand sides).
CALLS = {
    "lu_factor_ex": lambda a, p, b: torch.linalg.lu_factor_ex(a),
    "lu": lambda a, p, b: torch.linalg.lu(a),
    "lu_unpack": lambda a, p, b: torch.lu_unpack(*torch.linalg.lu_factor(a)),
    "lu_unpack pivots": lambda a, p, b: torch.lu_unpack(*torch.linalg.lu_factor(a), False)[0],
    "lu_unpack data": lambda a, p, b: torch.lu_unpack(*torch.linalg.lu_factor(a), True, False)[1:],
    "lu_solve": lambda a, p, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b),
    "lu_solve adjoint": lambda a, p, b: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(a), b, adjoint=True
    ),
    "lu_solve right": lambda a, p, b: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(a), b.mT, left=False
    ),
    "solve": lambda a, p, b: torch.linalg.solve(a, b),
    "solve right": lambda a, p, b: torch.linalg.solve(a, b.mT, left=False),
    "solve one matrix": lambda a, p, b: torch.linalg.solve(a, b.expand(2, *b.shape)),
    "inv": lambda a, p, b: torch.linalg.inv(a),
    "det": lambda a, p, b: torch.linalg.det(a / 8),
    "slogdet": lambda a, p, b: torch.linalg.slogdet(a),
    "logdet": lambda a, p, b: torch.logdet(p),
    "solve adjoint": lambda a, p, b: torch.linalg.solve(a.mH, b),
    "qr": lambda a, p, b: torch.linalg.qr(a),
    "qr of a part": lambda a, p, b: torch.linalg.qr(a[..., : a.shape[-1] // 2], "complete")[0],
    "qr without q": lambda a, p, b: torch.linalg.qr(a, "r")[1],
    "geqrf": lambda a, p, b: torch.geqrf(a),
    "householder_product": lambda a, p, b: torch.linalg.householder_product(*torch.geqrf(a)),
    "ormqr": lambda a, p, b: torch.ormqr(*torch.geqrf(a), b),
    "ormqr transposed": lambda a, p, b: torch.ormqr(*torch.geqrf(a), b, True, True),
    "ormqr right": lambda a, p, b: torch.ormqr(*torch.geqrf(a), b.mT, False),
    "ormqr right transposed": lambda a, p, b: torch.ormqr(*torch.geqrf(a), b.mT, False, True),
    "matrix_power": lambda a, p, b: torch.linalg.matrix_power(a, -2),
    "cholesky": lambda a, p, b: torch.linalg.cholesky(p),
    "cholesky upper": lambda a, p, b: torch.linalg.cholesky(p, upper=True),
    "old cholesky": lambda a, p, b: torch.cholesky(p),
    "cholesky_ex": lambda a, p, b: torch.linalg.cholesky_ex(p),
    "cholesky_inverse": lambda a, p, b: torch.cholesky_inverse(torch.linalg.cholesky(p)),
    "cholesky_inverse upper": lambda a, p, b: torch.cholesky_inverse(
        torch.linalg.cholesky(p, upper=True), True
    ),
    "cholesky_solve": lambda a, p, b: torch.cholesky_solve(b, torch.linalg.cholesky(p)),
    "cholesky_solve upper": lambda a, p, b: torch.cholesky_solve(
        b, torch.linalg.cholesky(p, upper=True), True
    ),
}


def inputs(shape, dtype, columns=5):
    """A general matrix, a positive definite one and right-hand sides; all well conditioned."""
    generator = torch.Generator().manual_seed(5)
    n = shape[-1]
    wide = torch.complex128 if dtype.is_complex else torch.float64
    middle = 0.5 + 0.5j if dtype.is_complex else 0.5
    a = torch.rand(shape, generator=generator, dtype=wide) - middle + 3 * torch.eye(n)
    p = a @ a.mH + torch.eye(n)
    b = torch.rand(*shape[:-1], columns, generator=generator, dtype=wide)
    return [x.to(dtype) for x in (a.flip(-2), p, b)]


def tolerance(dtype):
    single = dtype in (torch.float32, torch.complex64)
    return {"rtol": 1e-3, "atol": 1e-4} if single else {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_against_cpu(call, dtype, device, native):
    # Of large complex matrices MKL leaves the last reflection out; LAPACK does not.
    reflects = any(part in call for part in ("qr", "householder"))
    for shape in SHAPES[:-1] if dtype.is_complex and reflects else SHAPES:
        host = inputs(shape, dtype)
        expected = CALLS[call](*host)
        found = CALLS[call](*(x.to(device) for x in host))
        for f, e in zip(*map(torch.utils._pytree.tree_leaves, (found, expected)), strict=True):
            assert_close(f.cpu(), e, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES[1::2], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype, device, native):
    for name, call in CALLS.items():
        host = inputs((2, 7, 7), dtype)
        found = call(*(LAYOUTS[layout](x.to(device)) for x in host))
        expected = call(*(LAYOUTS[layout](x) for x in host))
        for f, e in zip(*map(torch.utils._pytree.tree_leaves, (found, expected)), strict=True):
            assert_close(f.cpu(), e, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(upper, left, unit, dtype, device, native):
    for shape in SHAPES:
        a, _, b = inputs(shape, dtype)
        a, b = a.flip(-2) / 3, b if left else b.mT
        for layout in LAYOUTS.values():
            expected = torch.linalg.solve_triangular(
                layout(a), b, upper=upper, left=left, unitriangular=unit
            )
            found = torch.linalg.solve_triangular(
                layout(a.to(device)), b.to(device), upper=upper, left=left, unitriangular=unit
            )
            assert_close(found.cpu(), expected, **tolerance(dtype))
        if left:
            for transpose in (False, True):
                expected = torch.triangular_solve(b, a, upper, transpose, unit)
                found = torch.triangular_solve(b.to(device), a.to(device), upper, transpose, unit)
                assert_close(found[0].cpu(), expected[0], **tolerance(dtype))


@pytest.mark.parametrize("left", [False, True])
def test_conjugate_triangular_systems(left, device, native):
    a, _, b = inputs((3, 7, 7), torch.complex64)
    a, b = a.flip(-2) / 3, b if left else b.mT
    for turn in (lambda x: x.conj(), lambda x: x.mH, lambda x: x.mT.conj().clone().conj()):
        for layout in LAYOUTS.values():
            expected = torch.linalg.solve_triangular(
                turn(layout(a)), b.conj(), upper=True, left=left
            )
            found = torch.linalg.solve_triangular(
                turn(layout(a.to(device))), b.to(device).conj(), upper=True, left=left
            )
            assert_close(found.cpu(), expected, **tolerance(a.dtype))


def test_wide_and_tall_factors(device, native):
    for shape in ((3, 5), (5, 3), (2, 4, 9), (2, 9, 4)):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        for f, e in zip(
            torch.linalg.lu_factor(x.to(device)), torch.linalg.lu_factor(x), strict=True
        ):
            assert_close(f.cpu(), e)


def test_large_complex_reflections(device, native):
    x = inputs((100, 100), torch.complex128)[0]
    q, r = (f.cpu() for f in torch.linalg.qr(x.to(device)))
    assert_close(q @ r, x)
    assert_close(q.mH @ q, torch.eye(100, dtype=x.dtype))
    assert_close(r, r.triu())


def test_singular_matrices(device, native):
    x = torch.tensor([[[1.0, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 0], [0, 1]], [[0, 1], [0, 3]]])
    y = x.to(device)
    for call in (torch.linalg.lu_factor_ex, torch.linalg.inv_ex, torch.linalg.cholesky_ex):
        assert call(y).info.tolist() == call(x).info.tolist()
    assert_close(torch.linalg.det(y).cpu(), torch.linalg.det(x))
    for call in (torch.linalg.inv, torch.linalg.cholesky, torch.linalg.lu_factor,
                 lambda t: torch.linalg.solve(t, t)):  # fmt: skip
        with pytest.raises(RuntimeError) as expected:
            call(x)
        with pytest.raises(type(expected.value)) as found:
            call(y)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("dtype", DTYPES[1::2], ids=str)
def test_gradients(dtype, device, native):
    calls = [
        torch.linalg.det, torch.linalg.inv, lambda x: torch.linalg.slogdet(x)[1],
        lambda x: torch.linalg.solve(x, x.mT.sin()), lambda x: torch.linalg.lu_factor(x)[0],
        lambda x: torch.linalg.cholesky(x @ x.mH + torch.eye(7, dtype=x.dtype, device=x.device)),
        lambda x: torch.linalg.solve_triangular(x + 5, x.cos(), upper=True),
        lambda x: torch.cholesky_solve(x, x.tril() + 5),
        lambda x: torch.linalg.qr(x)[0] * x, lambda x: torch.linalg.qr(x)[1],
    ]  # fmt: skip
    for call in calls:
        x = inputs((2, 7, 7), dtype)[0].requires_grad_()
        y = x.detach().to(device).requires_grad_()
        for t in (x, y):
            call(t).abs().square().sum().backward()
        assert_close(y.grad.cpu(), x.grad)


def test_out(device, native):
    a, p, b = inputs((3, 7, 7), torch.float64)
    x, q, r = (t.to(device) for t in (a, p, b))
    out = torch.empty(0, dtype=torch.float64, device=device)
    assert torch.linalg.inv(x, out=out) is out
    assert_close(out.cpu(), torch.linalg.inv(a))
    rows = torch.empty(3, 7, 10, dtype=torch.float64, device=device)[..., ::2]
    torch.linalg.solve(x, r, out=rows)
    assert_close(rows.cpu(), torch.linalg.solve(a, b))
    torch.linalg.solve_triangular(q, r, upper=True, out=rows)
    assert_close(rows.cpu(), torch.linalg.solve_triangular(p, b, upper=True))
    torch.linalg.cholesky(q, out=q)
    assert_close(q.cpu(), torch.linalg.cholesky(p))
    torch.cholesky_inverse(q, out=q)
    assert_close(q.cpu(), torch.linalg.inv(p))
    torch.linalg.inv(x, out=x)
    assert_close(x.cpu(), torch.linalg.inv(a))


def test_large_matrices_fall_back(device, module):
    module.fallback.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in inputs((300, 300), torch.float64)[:1] + inputs((300, 300), torch.complex64)[:1]:
            assert_close(torch.linalg.inv(x.to(device)).cpu(), torch.linalg.inv(x))
    assert "aten::linalg_lu_factor_ex.out" in module.fallback.counts()


def test_lu_unpack_leaves_out_pivots_beyond_the_matrix(device):
    factors, pivots = torch.rand(4, 2), torch.tensor([3, 4, 1, 1], dtype=torch.int32)
    found = torch.lu_unpack(factors.to(device), pivots.to(device))
    for ours, theirs in zip(found, torch.lu_unpack(factors, pivots), strict=True):
        assert_close(ours.cpu(), theirs, rtol=0, atol=0)


def test_lu_unpack_over_its_input(device):
    found, expected = (
        torch.ops.aten.lu_unpack.out(a, torch.empty(0, device=place), True, False,
                                     P=a.new_empty(0), L=a.new_empty(0), U=a)
        for place in (device, "cpu") for a in (torch.arange(12.0).view(4, 3).to(place),)
    )  # fmt: skip
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours.cpu(), theirs, rtol=0, atol=0)


@pytest.mark.parametrize("place", [(0, 0), (3, 0), (4, 1), (3, 2), (4, 2)])
def test_householder_product_reads_no_reflection_before_its_column(device, place):
    a, tau = torch.rand(5, 3), torch.rand(3)
    a[place] = torch.nan
    found = torch.linalg.householder_product(a.to(device), tau.to(device))
    assert_close(found.cpu(), torch.linalg.householder_product(a, tau), equal_nan=True)
