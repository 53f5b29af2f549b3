"""Sparse tensors of two devices: each stays where it is, and parts of two places do not mix."""

import pytest
import torch

pytestmark = [pytest.mark.any_driver, pytest.mark.two_drivers]

PLACES = torch.tensor([[0, 1, 1], [2, 0, 2]])
NUMBERS = torch.tensor([3.0, 4.0, 5.0])


def coo(where, values=None):
    return torch.sparse_coo_tensor(
        PLACES.to(where), (NUMBERS if values is None else values).to(where), (2, 3)
    )


def test_what_is_made_of_a_tensor_lies_on_its_device(device, second):
    for where in (device, second):
        wanted, sparse = torch.device(where).index or 0, coo(where)
        made = [
            sparse, sparse.coalesce(), sparse.t(), sparse * 2, sparse + sparse, sparse.clone(),
            torch.cat([sparse, sparse]), torch.zeros_like(sparse), sparse.to_sparse_csr(),
            sparse.to_dense(), torch.sparse.sum(sparse, 0), sparse.coalesce().indices(),
            torch.sparse.mm(sparse, torch.ones(3, 2, device=where)),
            torch.sparse_coo_tensor((2, 3), device=where),
            torch.ones(2, 3, device=where).to_sparse(),
        ]  # fmt: skip
        assert [t.device for t in made] == [torch.device(device, wanted)] * len(made)
    assert torch.accelerator.current_device_index() == 0


def test_the_current_device_is_where_new_ones_go(device, second, module):
    with module.device(second):
        assert torch.sparse_coo_tensor((2, 3), device=device).device == torch.device(second)
        assert coo(device).device == torch.device(second)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
def test_they_move_between_devices(device, second, layout):
    sparse = coo(device).to_dense().to_sparse(layout=layout)
    there = sparse.to(second)
    assert (there.device, there.layout) == (torch.device(second), layout)
    assert there.to_dense().cpu().equal(sparse.to_dense().cpu())
    there.values().mul_(2)
    back = there.to(device)
    assert back.device == torch.device(device, 0)
    assert back.to_dense().cpu().equal(2 * sparse.to_dense().cpu())


MIXED = {
    "positions elsewhere": lambda a, b: torch.sparse_coo_tensor(b._indices(), a._values(), (2, 3)),
    "positions on the CPU": lambda a, b: torch.sparse_coo_tensor(PLACES, a._values(), (2, 3)),
    "sum": lambda a, b: a + b,
    "product": lambda a, b: torch.sparse.mm(a, torch.ones(3, 2, device=b.device)),
    "joined": lambda a, b: torch.cat([a, b]),
    "dense and sparse": lambda a, b: torch.ones(2, 3, device=a.device) + b,
}


@pytest.mark.parametrize("name", MIXED)
def test_parts_of_two_places_are_refused(device, second, name):
    with pytest.raises(RuntimeError, match=r"same device|different devices"):
        MIXED[name](coo(device), coo(second))
