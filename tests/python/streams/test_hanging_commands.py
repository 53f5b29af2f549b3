"""A command that never ends: every wait for it can be interrupted, limited, and left behind at exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from sandbox import NAME, ROOT, Ran, build_c

pytestmark = pytest.mark.both_modes

SECONDS = 2.0  # within which an interrupt ends a wait

# GRAFT_HOST_FAULTS makes the copy in hang() one that never ends; nothing here copies before it.
HANG = """
    import signal, subprocess, threading, time

    def hang():
        with torch.inference_mode():
            return torch.ones(9).pin_memory().to(D, non_blocking=True)

    def interrupted(wait):
        # From another process: the wait may hold Python's lock.
        sent = time.monotonic() + 0.5
        sender = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -INT {os.getpid()}"])
        try:
            wait()
        except KeyboardInterrupt:
            sender.wait()
            return time.monotonic() - sent
        raise AssertionError("the wait ended by itself")

    number, many = torch.full((), 7.0, device=D), torch.zeros(1 << 20, device=D)
    torch.accelerator.synchronize()
"""

WAITS = {
    "device": "torch.accelerator.synchronize()",
    "module": "torch.get_device_module(D).synchronize()",
    "stream": "torch.accelerator.current_stream().synchronize()",
    "event": "event.synchronize()",
    "item": "number.item()",
    "bool": "bool(number)",
    "nonzero": "many.nonzero()",
    "to the host": "many.cpu()",
    "to the host, strided": "many.view(1024, 1024).t()[::2].cpu()",
    "to the device": "torch.ones(1 << 22).to(D)",
    "to the device, another dtype": "many.copy_(torch.ones(1 << 20, dtype=torch.float64))",
    "to a pinned tensor": "torch.empty(1 << 20).pin_memory().copy_(many)",
    "fallback": "torch.linalg.eigvals(torch.zeros(3, 3, device=D))",
    "cache": "(globals().pop('x') is None, torch.get_device_module(D).empty_cache())",
}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A driver of an older minor, on which a copy of 36 bytes never ends."""
    source = (ROOT / "tests/drivers/stuck.c").read_text()
    return build_c(tmp_path_factory.mktemp("stuck") / "stuck.so", source)


def alone(driver: str) -> dict[str, str]:
    return {"GRAFT_DRIVER_PATH": driver, "GRAFT_DEVICES": "stuck", "STUCK_BYTES": "36"}


@pytest.mark.parametrize("name", WAITS)
def test_an_interrupt_ends_the_wait(python: Callable[..., Ran], name: str) -> None:
    ran = python(
        HANG
        + f"""
    x = torch.empty(1 << 24, device=D)
    held = hang()
    event = torch.accelerator.current_stream().record_event()
    seconds = interrupted(lambda: {WAITS[name]})
    print(json.dumps(seconds))
    """,
        GRAFT_HOST_FAULTS="copy:hang",
    )
    assert ran.value() < SECONDS


def test_an_interrupt_ends_a_compiled_call(python: Callable[..., Ran]) -> None:
    prepared = (
        HANG
        + """
    compiled = torch.compile(lambda x: (x * 2 + 1).sum() / x.numel())
    compiled(many)
    torch.accelerator.synchronize()
    """
    )
    count = """
    print(json.dumps(torch.get_device_module(D).statistics(0)["copies"]))
    """
    copies = python(prepared + count).value()
    ran = python(
        prepared
        + """
    held = hang()
    print(json.dumps(interrupted(lambda: compiled(many).item())))
    """,
        GRAFT_HOST_FAULTS=f"copy:hang{copies + 1}",
    )
    assert ran.value() < SECONDS


@pytest.mark.parametrize("wait", ["device", "event", "item", "to the host", "to the device"])
def test_an_interrupt_ends_the_wait_on_an_older_driver(
    python: Callable[..., Ran], stuck: str, wait: str
) -> None:
    ran = python(
        HANG
        + f"""
    held = hang()
    event = torch.accelerator.current_stream().record_event()
    print(json.dumps(interrupted(lambda: {WAITS[wait]})))
    """,
        **alone(stuck),
    )
    assert ran.value() < SECONDS
    assert "device_close" not in ran.err


def test_the_interrupt_finds_the_handler_of_the_program(python: Callable[..., Ran]) -> None:
    ran = python(
        HANG
        + """
    def handler(*_):
        raise TimeoutError("rang")
    signal.signal(signal.SIGALRM, handler)
    held = hang()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        number.item()
    except TimeoutError as error:
        print(json.dumps(str(error)))
    """,
        GRAFT_HOST_FAULTS="copy:hang",
    )
    assert ran.value() == "rang"


def test_threads_get_on_while_one_waits(python: Callable[..., Ran]) -> None:
    """The waiting thread holds neither Python's lock nor its stream's."""
    ran = python(
        HANG
        + """
    held = hang()
    steps = []
    def work():
        for _ in range(5):
            steps.append(many + 1)
            time.sleep(0.05)
    threading.Thread(target=work).start()
    seconds = interrupted(lambda: torch.accelerator.synchronize())
    print(json.dumps([seconds, len(steps)]))
    """,
        GRAFT_HOST_FAULTS="copy:hang",
    )
    seconds, steps = ran.value()
    assert seconds < SECONDS
    assert steps == 5


LIMITED = """
    held = hang()
    told = []
    for wait in (torch.accelerator.synchronize, number.item, many.cpu):
        begin = time.monotonic()
        try:
            wait()
        except torch.AcceleratorError as error:
            told.append([str(error), time.monotonic() - begin])
    with torch.Stream(D):
        told.append((torch.full((3,), 2.0, device=D) * 2).tolist())
"""


@pytest.mark.host_only
def test_the_limit_names_operator_device_and_driver(python: Callable[..., Ran]) -> None:
    ran = python(
        HANG
        + LIMITED
        + """
    told.append((torch.ones(3, device=f"{D}:1") * 2).tolist())
    print(json.dumps(told))
    """,
        GRAFT_HOST_FAULTS="copy:hang",
        GRAFT_HOST_DEVICES="2",
        GRAFT_TIMEOUT="1",
    )
    *waits, same, other = ran.value()
    assert len(waits) == 3
    for text, seconds in waits:
        assert "aten::copy_" in text
        assert f"did not end within GRAFT_TIMEOUT=1 seconds on {NAME}:0 (driver 'host')" in text
        assert "Raise GRAFT_TIMEOUT" in text
        assert 0.9 < seconds < 3
    assert same == [4, 4, 4]
    assert other == [2, 2, 2]


def test_the_limit_on_an_older_driver(python: Callable[..., Ran], stuck: str) -> None:
    ran = python(
        HANG
        + """
    held = hang()
    try:
        torch.accelerator.synchronize()
    except torch.AcceleratorError as error:
        print(json.dumps(str(error)))
    """,
        GRAFT_TIMEOUT="0.3",
        **alone(stuck),
    )
    assert f"aten::copy_ did not end within GRAFT_TIMEOUT=0.3 seconds on {NAME}:0" in ran.value()
    assert "(driver 'stuck')" in ran.value()


def test_a_limit_that_is_no_number_is_told_of(python: Callable[..., Ran]) -> None:
    ran = python("print(torch.ones(1))", GRAFT_TIMEOUT="soon").good()
    assert "GRAFT_TIMEOUT is 'soon', expected a number of seconds" in ran.err


def ended(code: str, interrupt: bool, **environment: str) -> tuple[float, str]:
    """How long the process took to end after it printed a line, or was interrupted then; its errors."""
    script = "import json, os, sys, torch\nD = os.environ['DEVICE']\n" + code
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "DEVICE": NAME, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "end\n"
        if interrupt:
            time.sleep(0.7)
            process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = process.communicate(timeout=60)
        return time.monotonic() - begin, errors


AT_EXIT = "x = torch.ones(9).pin_memory().to(D, non_blocking=True)\nprint('end', flush=True)\n"


def test_an_interrupt_ends_the_exit() -> None:
    seconds, errors = ended(AT_EXIT, True, GRAFT_HOST_FAULTS="copy:hang")
    assert seconds < SECONDS
    assert f"the process ends with commands left on {NAME}:0" in errors
    assert "Traceback" not in errors


def test_an_interrupted_program_does_not_wait_again() -> None:
    code = AT_EXIT + "torch.accelerator.synchronize()\n"
    seconds, errors = ended(code, True, GRAFT_HOST_FAULTS="copy:hang")
    assert seconds < SECONDS
    assert "KeyboardInterrupt" in errors


def test_the_exit_waits_as_long_as_it_promises() -> None:
    seconds, errors = ended(AT_EXIT, False, GRAFT_HOST_FAULTS="copy:hang")
    assert 4 < seconds < 5 + SECONDS
    assert f"the process ends with commands left on {NAME}:0" in errors
    seconds, _ = ended(AT_EXIT, False, GRAFT_HOST_FAULTS="copy:hang", GRAFT_TIMEOUT="0.5")
    assert seconds < 0.5 + SECONDS


def test_the_end_closes_the_device(python: Callable[..., Ran], stuck: str) -> None:
    """Also with tensors, events and streams that live to the end, and after it."""
    ran = python(
        """
        import atexit, builtins
        x = torch.ones(1000, device=D)
        event = torch.Event(D)
        event.record()
        pinned = torch.ones(1000).pin_memory()
        builtins.kept = [x, event, pinned, torch.Stream(D), x.to("cpu", non_blocking=True)]
        y = torch.empty(0, device=D).set_(x.untyped_storage())
        side = torch.Stream(D)
        with side:
            z = x + 1
        class Last:  # runs when the interpreter takes the modules down
            def __del__(self):
                print(pinned.sum().item(), flush=True)
        builtins.last = Last()
        """,
        GRAFT_DRIVER_PATH=stuck,
        GRAFT_DEVICES="stuck",
        GRAFT_FALLBACK="off",
    ).good()
    assert ran.err.strip() == "device_close: 0 memory, 0 events, 0 streams"


def test_a_hung_device_is_not_closed(python: Callable[..., Ran], stuck: str) -> None:
    ran = python(HANG + "\n    held = hang()", GRAFT_TIMEOUT="0.2", **alone(stuck)).good()
    assert "device_close" not in ran.err
    assert "the process ends with commands left" in ran.err
