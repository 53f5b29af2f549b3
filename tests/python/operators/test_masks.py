"""Numbers that go where a mask says, and masks that do not fit."""

import pytest
import torch
from torch.testing import assert_close

ROWS, COLUMNS = [True, False, True], [True, False, False, True]


MASKED = {
    "each element": lambda x: x.__setitem__(x > 5, -1.0),
    "rows": lambda x: x.__setitem__((x > 5)[:, :, 0], -1.0),
    "the middle": lambda x: x.__setitem__((slice(None), x.new_tensor(ROWS).bool()), -1.0),
    "the end": lambda x: x.__setitem__((..., x.new_tensor(COLUMNS).bool()), -1.0),
    "a part": lambda x: x[:, ::2].__setitem__(x[:, ::2] > 5, 0.0),
    "turned": lambda x: x.transpose(0, 2).__setitem__(x.transpose(0, 2) > 5, 0.5),
    "a tensor of one": lambda x: x.__setitem__(x > 5, x.new_tensor([7.0])),
    "all or nothing": lambda x: x.__setitem__(x.sum() > 0, 3.0),
    "itself": lambda x: x.gt(5).__setitem__(x > 5, False),
    "added": lambda x: x.index_put_((x > 5,), x.new_tensor(2.0), accumulate=True),
    "two masks": lambda x: x.__setitem__((x[:, 0, 0] > 5, x[0, :, 0] > 5), 4.0),
    "nothing chosen": lambda x: x.__setitem__(x > 99, 4.0),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_number_goes_where_a_mask_says(device, native, name):
    plain = torch.arange(24.0).reshape(2, 3, 4)
    x = plain.to(device)
    if name == "two masks":
        x[1, :2], plain[1, :2] = 9, 9
    for tensor in (plain, x):
        MASKED[name](tensor)
    assert_close(x.cpu(), plain, rtol=0, atol=0)


def test_masks_that_do_not_fit_are_refused(device):
    x = torch.zeros(2, 3, device=device)
    with pytest.raises(IndexError, match="shape of the mask"):
        x[torch.ones(3, dtype=torch.bool, device=device)] = 1.0
    with pytest.raises(RuntimeError, match="dtypes match"):
        x.index_put_((x > 0,), torch.tensor(1, device=device))
    x[(x == 0) & (x == 1)] = 1.0
    assert not x.any().item()
