"""Events: when they are done, who waits for them, what times they tell."""

import pytest
import torch

pytestmark = pytest.mark.both_modes


def test_an_event_is_done_when_its_work_is(asynchronous):
    assert asynchronous["event"] == [True, False, True]


def test_a_stream_is_idle_once_the_event_at_its_end_is_done(asynchronous):
    assert asynchronous["idle after its last event"]


def test_a_stream_waits_for_an_event_of_another_device(asynchronous):
    assert asynchronous["wait across devices"] == [True, True]


def test_a_time_needs_two_timed_events_that_are_recorded(device, second):
    plain, timed = (torch.Event(device, enable_timing=on) for on in (False, True))
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(torch.Event(device, enable_timing=True))
    there = torch.Event(second, enable_timing=True)
    timed.record(torch.accelerator.current_stream(0))
    there.record(torch.accelerator.current_stream(1))
    timed.synchronize()
    there.synchronize()  # torch refuses what is not done yet before it asks anybody
    with pytest.raises(
        RuntimeError, match=r"elapsed_time got events of .*: give events of one device"
    ):
        timed.elapsed_time(there)


def test_events_of_streams(device, second):
    event, stream = torch.Event(device), torch.Stream(second)
    assert event.event_id == 0
    event.record()
    first = event.event_id
    assert first != 0
    assert event.device == torch.device(device, 0)
    with pytest.raises(RuntimeError, match="cannot be recorded on a stream of"):
        event.record(stream)
    event.wait(stream)
    event.wait()
    with stream:
        assert stream.record_event().device == torch.device(second)
    blocking = torch.Event(device, blocking=True)
    blocking.record()
    blocking.synchronize()
    assert blocking.query()
