"""GRAFT_TRACE=1: a late error says where in Python its operator was called."""

import pytest

CULPRIT = """
    def culprit(x, index):
        return x[index]
    x, index = torch.ones(3, device=D), torch.tensor([9], device=D)
    try:
        culprit(x, index)
        for _ in range(10): x = x + 1
        torch.accelerator.synchronize()
    except Exception as error:
        print(json.dumps(str(error)))
"""


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_late_error_brings_the_stack(python, mode):
    text = python(CULPRIT, GRAFT_TRACE="1", GRAFT_HOST_MODE=mode).value()
    assert "index" in text
    assert "in culprit" in text


def test_stack_is_off_by_default(python):
    text = python(CULPRIT, GRAFT_TRACE=None).value()
    assert "index" in text
    assert "culprit" not in text
