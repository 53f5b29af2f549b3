# tests/python/test_complex.py: reductions of complex numbers, native by parts or through the fallback.
import pytest
import torch
from torch.testing import assert_close

REDUCTIONS = {
    "sum": lambda x: x.sum(), "sum dim": lambda x: x.sum(0), "mean": lambda x: x.mean(1, True),
    "sum strided": lambda x: x.t()[::2].sum(1), "diagonal": lambda x: x.diagonal().sum(),
    "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(0), "prod": lambda x: x.prod(),
    "any": lambda x: (x * 0).any(1), "all": lambda x: x.all(), "var": lambda x: x.var(),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "real to complex": lambda x: x.real.sum(0, dtype=torch.complex64),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:aten::.* runs on the CPU")
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(device, name, dtype):
    x = torch.randn(6, 7, dtype=dtype, generator=torch.Generator().manual_seed(1))
    call = REDUCTIONS[name]
    assert_close(call(x.to(device)).cpu(), call(x))
