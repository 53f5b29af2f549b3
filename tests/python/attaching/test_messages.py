"""Texts call the device by its name, whatever the name is."""

import re

import pytest

from sandbox import program

pytestmark = pytest.mark.one_mode

WRONG = re.compile(
    r"torch\.graft\b(?!/)|\bgraft:\d|\bgraft (device|tensor|stream)s?\b|device\s*=\s*.?['\"]graft"
    r"|device type graft|'graft'"
)
# The step's text must have this: else the step did not provoke what it is for.
SAID = {
    "out_of_memory": "zeta:0", "out_of_the_drivers_memory": "torch.zeta.empty_cache()",
    "bad_device_index": "zeta:40", "bad_index": "zeta:0", "stream_of_no_device": "zeta:40",
    "device_of_another_type": "Expected a zeta device", "wait_of_no_device": "zeta:40",
    "sync_debug_mode": "zeta", "sync_debug_warning": "zeta", "fallback_warning": "torch.zeta.fallback",
    "fallback_forbidden": "zeta", "wait_in_a_capture": "zeta:0", "graph_pool": "torch.zeta",
    "unknown_attribute": "module 'torch.zeta' has no attribute", "properties": "zeta:0",
    "profile": "zeta", "report_of_the_doctor": "device='zeta' and torch.zeta",
    "help_texts": "Waits for all work of a device",
}  # fmt: skip


@pytest.fixture(scope="module")
def texts(python):
    ran = python(
        program("tests/python/attaching/renamed_errors.py"), GRAFT_DEVICE_NAME="zeta",
        GRAFT_HOST_DEVICES="2", GRAFT_HOST_MEMORY=str(1 << 30),
    )  # fmt: skip
    return ran.value()


def test_no_text_names_another_device(texts):
    wrong = {name: text for name, text in texts.items() if WRONG.search(text)}
    assert wrong == {}


def test_each_step_gives_its_text(texts):
    assert [name for name, text in texts.items() if not text] == []
    for name, word in SAID.items():
        assert word in texts[name], f"{name}: {texts[name]}"
