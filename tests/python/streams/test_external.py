# tests/python/streams/test_external.py: streams that the vendor's library made.
"""torch.graft.ExternalStream."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import Ran, build_c

# tiny.c with a vendor's stream, whose handle is 4711, and counts of what happens on it.
DRIVER = """
#define graft_driver_query tiny_query
#include "tiny.c"
#undef graft_driver_query
static char vendors;
int vendors_copies = 0, wraps = 0;
static graft_status wrap(graft_device device, uint64_t native_handle, graft_stream* out) {
  (void)device;
  if (native_handle != 4711) return GRAFT_INVALID_ARGUMENT;
  ++wraps;
  *out = (graft_stream)&vendors;
  return GRAFT_OK;
}
static graft_status counted(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
                            uint32_t tag) {
  if (stream == (graft_stream)&vendors) ++vendors_copies;
  return copy(stream, to, from, bytes, kind, tag);
}
graft_status graft_driver_query(graft_driver_table* table) {
  graft_driver_table mine = kTable;
  mine.stream_wrap = wrap;
  mine.copy = counted;
  return graft_driver_fill(table, &mine);
}
"""


@pytest.mark.host_only
def test_work_goes_to_the_vendors_stream(python: Callable[..., Ran], tmp_path: Path) -> None:
    path = build_c(tmp_path / "foreign.so", DRIVER)
    ran = python(
        """
        import ctypes
        g = torch.get_device_module(D)
        stream = g.ExternalStream(4711, D)
        assert isinstance(stream, torch.Stream)
        assert g.ExternalStream(4711) == stream != torch.accelerator.current_stream()
        with stream:
            assert torch.accelerator.current_stream() == stream
            x = torch.arange(3.0).to(D)
            y = x.cpu()
        event = stream.record_event()
        torch.accelerator.current_stream().wait_event(event)
        stream.synchronize()
        try:
            g.ExternalStream(12)
        except (RuntimeError, ValueError) as error:
            refused = str(error)
        vendor = ctypes.CDLL(os.environ["GRAFT_DRIVER_PATH"])
        counts = [ctypes.c_int.in_dll(vendor, name).value for name in ("vendors_copies", "wraps")]
        print(json.dumps([y.tolist(), *counts, refused]))
        """,
        GRAFT_DRIVER_PATH=path,
        GRAFT_DEVICES="tiny",
    )
    values, copies, wraps, refused = ran.value()
    assert values == [0.0, 1.0, 2.0]
    assert copies == 2
    assert wraps == 1
    assert "stream_wrap" in refused


@pytest.mark.any_driver
def test_the_handle_of_a_stream_of_ours_is_that_stream(python: Callable[..., Ran]) -> None:
    """In a process of its own: memory of a device that gave a handle away is trusted no more."""
    ran = python(
        """
        own = torch.Stream(D)
        module = torch.get_device_module(D)
        assert module.ExternalStream(own.native_handle) == own
        try:
            module.ExternalStream(0)
        except (RuntimeError, ValueError) as error:
            print(error)
        """
    )
    assert "native handle 0" in ran.good().out


@pytest.mark.host_only
def test_a_driver_without_the_slot_says_so(python: Callable[..., Ran], tmp_path: Path) -> None:
    ran = python(
        """
        try:
            torch.get_device_module(D).ExternalStream(5)
        except RuntimeError as error:
            print(error)
        """,
        GRAFT_DRIVER_PATH=build_c(tmp_path / "plain.so", '#include "tiny.c"'),
        GRAFT_DEVICES="tiny",
    )
    assert "takes no streams of others: its driver lacks stream_wrap" in ran.good().out
