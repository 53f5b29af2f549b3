"""A vendor that takes no call is asked once for each layout, and Graft computes as without it."""

from __future__ import annotations

import pytest

from sandbox import interpret

ADDING = """
import ctypes, threading
planned = ctypes.CDLL(os.environ["GRAFT_DRIVER_PATH"]).graft_limited_planned
graft = torch.get_device_module(D)
sizes = [(1,), (3, 5), (2, 3, 4)]
made = [[torch.ones(size, device=D), torch.empty(size, device=D)] for size in sizes]


def work(repeats):
    for x, o in made * repeats:
        torch.add(x, x, out=o)


counts = [planned()]
work(1)
counts.append(planned())
work(50)
threads = [threading.Thread(target=work, args=(50,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
counts.append(planned())
torch.add(*[torch.ones(7, device=D)] * 2)
counts.append(planned())
same = all((o.cpu() == 2).all().item() for _, o in made)
print(json.dumps([counts, same, graft.fallback.total()]))
"""


def test_a_layout_that_is_refused_is_asked_for_once(limited):
    counts, same, fallbacks = interpret(ADDING, **limited("plans_none")).value()
    before, first, repeated, other = counts
    assert first - before == 3
    assert repeated == first
    assert other > repeated
    assert same
    assert fallbacks == 0


@pytest.mark.parametrize("limit", ["knows_none", "none"])
def test_a_vendor_that_knows_no_operator_is_asked_for_no_plan(limited, limit):
    counts, same, fallbacks = interpret(ADDING, **limited(limit)).value()
    assert counts == [0, 0, 0, 0]
    assert same
    assert fallbacks == 0


# More layouts than are kept for looking up without a lock.
MANY = """
graft = torch.get_device_module(D)
wrong = 0
for size in range(1, 9000):
    x = torch.ones(size, device=D)
    wrong += size % 1000 == 0 and (x + x).sum().item() != 2 * size
    x.add_(x)
print(json.dumps([bool(wrong), graft.fallback.total()]))
"""


def test_more_refusals_than_are_kept(limited):
    assert interpret(MANY, **limited("plans_none")).value() == [False, 0]
