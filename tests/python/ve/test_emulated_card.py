"""The veda driver behind torch.device("ve"), on the emulated card: what users see of it, and of its failures.

The card's memory lies in another process (tests/emulated/veda). Each test has an interpreter of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import sandbox
from sandbox import Ran

pytestmark = pytest.mark.one_mode

HOST_ENDS = 1 << 45  # the card's addresses begin here; the host's programs have none above


def test_the_host_reads_no_tensor_through_its_pointer(on_card: Callable[..., Ran]) -> None:
    pointer, text, values = on_card("""
    x = torch.arange(4.0, device="ve") + 1
    torch.ve.synchronize()
    memory = open("/proc/self/mem", "rb", buffering=0)
    memory.seek(x.data_ptr())
    print(json.dumps([x.data_ptr(), told(lambda: memory.read(16)), x.tolist()]))
    """).value()
    assert pointer >= HOST_ENDS
    assert text.startswith("OSError")
    assert values == [1, 2, 3, 4]


def test_results_are_computed_on_the_card(on_card: Callable[..., Ran]) -> None:
    code = """
    a = torch.ones(2, 3).ve()
    results = [a + 1, a @ a.T, torch.softmax(a, 1), a.sum(), torch.nn.functional.gelu(a)]
    expected = [w(a.cpu()) for w in (lambda a: a + 1, lambda a: a @ a.T, lambda a: a.softmax(1),
                                     torch.sum, torch.nn.functional.gelu)]
    equal = [torch.allclose(x.cpu(), y, equal_nan=True) for x, y in zip(results, expected)]
    print(json.dumps([equal, list(torch.ve.fallback.counts())]))
    """
    poisoned = {"EMULATED_VEDA_FAULT": "drop:*:*"}
    assert on_card(code).value() == [[True] * 5, []]
    assert on_card(code, **poisoned).value() == [[False] * 5, []]


CRASHED = """
x = torch.ones(8, device="ve")
y = (x * 2).tolist()
other = torch.ones(8, device="ve:1")
crash()
found = [told(lambda: (x + 1).cpu()), told(x.cpu), told(lambda: torch.ones(3, device="ve"))]
print(json.dumps([y, found, (other + 1).tolist(), (torch.ones(2) + 1).tolist()]))
"""


@pytest.mark.parametrize("how", ["device code", "process"])
def test_a_lost_card_is_told_and_nothing_else_is_lost(
    on_card: Callable[..., Ran], how: str
) -> None:
    plant = 'plant(b"", b"exception:*:1")' if how == "device code" else "os.kill(process(0), 9)"
    control = f"""
import ctypes
library = ctypes.CDLL(os.environ["GRAFT_VEDA_LIBRARY"])
plant, process = library.emulated_veda_plant, library.emulated_veda_process
def crash():
    {plant}
"""
    doubled, found, other, cpu = on_card(control + CRASHED, EMULATED_VEDA_DEVICES="2").value()
    assert doubled == [2] * 8
    for text in found:
        assert text.startswith(("AcceleratorError", "RuntimeError")), text
        assert "ve:0" in text
    assert "lost" in found[1]
    assert "restart the process" in found[1]
    assert other == [2] * 8
    assert cpu == [2, 2]


def test_a_full_card_is_out_of_memory_and_usable_afterwards(on_card: Callable[..., Ran]) -> None:
    text, kind, total = on_card("""
    kept = torch.ones(1000, device="ve")
    text = told(lambda: torch.empty(1 << 28, device="ve"))
    try:
        torch.empty(1 << 28, device="ve")
    except torch.OutOfMemoryError:
        kind = "caught"
    more = torch.ones(1 << 20, device="ve")
    print(json.dumps([text, kind, (kept.sum() + more.sum()).item()]))
    """, EMULATED_VEDA_MEMORY="64M").value()  # fmt: skip
    assert kind == "caught"
    assert text.startswith("OutOfMemoryError: Tried to allocate 1.00 GiB. ve:0 ")
    assert total == 1000 + (1 << 20)


def test_a_model_split_over_two_cards_and_another_device(on_card: Callable[..., Ran]) -> None:
    equal, where = on_card("""
    from torch import nn
    torch.manual_seed(0)
    parts = [nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)]
    x = torch.randn(5, 6)
    def run(places):
        y, here = x, []
        for part, place in zip(parts, places):
            part.zero_grad()
            y = part.to(place)(y.to(place)).relu()
        y.sum().backward()
        return [y.detach().cpu(), *(p.grad.cpu() for part in parts for p in part.parameters())]
    expected = run(["cpu"] * 3)
    got = run(["ve:0", "ve:1", "graft:0"])
    print(json.dumps([all(map(torch.allclose, got, expected)),
                      [str(part.weight.grad.device) for part in parts]]))
    """, EMULATED_VEDA_DEVICES="2", GRAFT_DEVICES="host", GRAFT_DEVICE_NAME="graft").value()  # fmt: skip
    assert equal
    assert where == ["ve:0", "ve:1", "graft:0"]


def doctor(card: dict[str, str], **more: str) -> str:
    return sandbox.doctor(**card | more).stdout


def test_the_doctor_explains_a_card(card: dict[str, str]) -> None:
    out = doctor(card, GRAFT_DEVICES="host")
    assert "veda:0 is 'NEC SX-Aurora" in out
    assert "(carries a device of torch.device('ve'))" in out
    assert "  ok       ve:0 is veda:0, NEC SX-Aurora" in out
    assert f"  libveda: {Path(card['GRAFT_VEDA_LIBRARY']).resolve()}" in out
    assert "  compiler: /" in out


def test_the_doctor_misses_a_compiler(card: dict[str, str], tmp_path: Path) -> None:
    out = doctor(card, GRAFT_VE_CC="/nowhere/ncc -O2", GRAFT_CACHE_DIR=str(tmp_path))
    assert "  PROBLEM  the compiler '/nowhere/ncc' for Vector Engines is missing" in out
    assert "GRAFT_VE_CC" in out


def test_the_doctor_says_where_it_looked() -> None:
    out = doctor({"GRAFT_VE_DEVICES": "veda", "VEDA_VISIBLE_DEVICES": ""})
    assert "           finds no device on this machine: libveda" in out
    assert "  no device: see the drivers above" in out
    named = doctor({"GRAFT_VE_DEVICES": "veda", "GRAFT_VEDA_LIBRARY": "/nowhere/libveda.so.0"})
    assert "/nowhere/libveda.so.0" in named
    assert "PROBLEM" in named
    assert "not served by Graft: GRAFT_VE=0" in doctor({"GRAFT_VE": "0"})
