"""Streams: equality, handles, priorities, and which one is current."""

import pytest
import torch

from sandbox import ROOT, build_c

pytestmark = pytest.mark.both_modes


def test_streams_of_two_devices_are_asked_apart(asynchronous):
    assert asynchronous["two devices"] == [[True, False], [True, True]]


def test_equal_streams_are_one(device, second):
    here, again = (torch.accelerator.current_stream() for _ in range(2))
    other, there = torch.Stream(device), torch.accelerator.current_stream(1)
    assert here == again
    assert hash(here) == hash(again)
    assert len({here, again, other, there}) == 3
    rebuilt = torch.Stream(
        stream_id=other.stream_id, device_index=other.device_index, device_type=other.device_type
    )
    assert rebuilt == other
    assert "stream_id" in repr(other)
    assert there.device == torch.device(second)


def test_native_handles_tell_streams_apart(python):
    """In a process of its own: whoever has a handle may write, so the device's memory is not trusted
    from then on."""
    python(
        """
        streams = [torch.accelerator.current_stream(), torch.Stream(f"{D}:0"),
                   torch.Stream(f"{D}:0"), torch.Stream(f"{D}:1")]
        handles = [stream.native_handle for stream in streams]
        assert all(handles)
        assert len(set(handles)) == 4
        assert torch.accelerator.current_stream().native_handle == handles[0]
        """
    ).good()


def test_a_driver_without_native_handles_is_told(python, tmp_path):
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    ran = python(
        """
        try:
            torch.accelerator.current_stream().native_handle
        except RuntimeError as error:
            print(error)
        """,
        GRAFT_DRIVER_PATH=tiny, GRAFT_DEVICES="tiny",
    ).good()  # fmt: skip
    assert "offers no native stream handle" in ran.out


def test_stream_contexts_nest_across_devices(device, second):
    default = torch.accelerator.current_stream()
    there, here = torch.Stream(second), torch.Stream(device)
    seen = []

    def look(stream):
        current = torch.accelerator.current_stream() == stream
        seen.append((current, torch.accelerator.current_device_index()))

    with there:
        look(there)
        with here:
            look(here)
            with default:
                look(default)
            look(here)
        look(there)
    look(default)
    assert seen == [(True, 1), (True, 0), (True, 0), (True, 0), (True, 1), (True, 0)]


def test_default_streams(device, second, module):
    with module.device(1):
        there = module.default_stream()
        assert torch.accelerator.current_stream() == there
    assert there.device == torch.device(second)
    assert module.default_stream(second) == there
    assert module.default_stream(0) == torch.accelerator.current_stream()
    with torch.Stream(device):
        assert module.default_stream() != torch.accelerator.current_stream()


@pytest.mark.parametrize("priority", [-5, -1, 0, 1, 5])
def test_a_stream_of_any_priority_works(device, priority):
    stream = torch.Stream(device, priority=priority)
    assert stream != torch.Stream(device, priority=-priority if priority else 1)
    with stream:
        total = torch.ones(1000, device=device).cumsum(0)[-1]
    stream.synchronize()
    assert total.item() == 1000
