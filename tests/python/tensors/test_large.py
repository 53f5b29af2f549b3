# tests/python/tensors/test_large.py: tensors of more than 2^31 elements: right to the last one, not truncated.
from __future__ import annotations

import pytest
import torch

COUNT = 2**31 + 1000
DTYPES = [torch.int8, torch.bool]


@pytest.fixture(autouse=True)
def empty_cache():
    yield
    torch.accelerator.synchronize()
    torch.accelerator.memory.empty_cache()


@pytest.fixture
def ones(request):
    return torch.ones(COUNT, dtype=request.param, device="graft")


@pytest.mark.parametrize("ones", DTYPES, indirect=True)
def test_reductions_see_every_element(ones):
    assert ones.sum().item() == COUNT
    assert ones.all().item()
    ones[-2] = 0
    assert ones.sum().item() == COUNT - 1
    assert not ones.all().item()
    assert ones.count_nonzero().item() == COUNT - 1


@pytest.mark.parametrize("ones", [torch.int8], indirect=True)
def test_places_beyond_int32(ones):
    place = COUNT - 7
    ones[place] = 5
    assert ones.argmax().item() == place
    assert ones.max().item() == 5
    assert (ones > 1).nonzero().flatten().tolist() == [place]
    index = torch.tensor([place, 3], device="graft")
    assert ones[index].tolist() == [5, 1]
    assert ones.index_select(0, index).tolist() == [5, 1]
    assert ones.take(index).tolist() == [5, 1]
    ones[index] = 7
    assert ones[place].item() == ones[3].item() == 7


@pytest.mark.parametrize("ones", DTYPES, indirect=True)
def test_pointwise_in_place_and_copies(ones):
    ones.logical_not_() if ones.dtype == torch.bool else ones.neg_()
    expected = 0 if ones.dtype == torch.bool else -1
    assert ones[-3:].tolist() == [expected] * 3
    assert (ones == expected).all().item()
    half = ones[::2].contiguous()
    assert half.numel() == COUNT // 2
    back = ones[-5:].cpu()
    assert back.tolist() == [expected] * 5


def test_matrix_whose_rows_lie_beyond_int32():
    rows = COUNT // 1000 + 1
    matrix = torch.zeros(rows, 1000, dtype=torch.int8, device="graft")
    matrix[-1] = 1
    assert matrix.sum(1)[-2:].tolist() == [0, 1000]
    assert matrix.amax(0).sum().item() == 1000
    turned = matrix.t()[:, -3:].contiguous()
    assert turned[0].tolist() == [0, 0, 1]
    joined = torch.cat([matrix[-2:], matrix[:1]])
    assert joined.sum().item() == 1000
