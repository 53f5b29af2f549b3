"""Streams and events: order, waits, times, work that is truly behind."""

import pytest
import torch

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]


@pytest.fixture(autouse=True)
def _accelerator(device):
    if device == "cpu":
        pytest.fail("needs a device with streams")


def test_streams_are_torchs(device, module):
    assert module.Stream is torch.Stream
    assert module.Event is torch.Event
    default = torch.accelerator.current_stream()
    stream = torch.Stream(device)
    assert stream.device == torch.device(device, 0)
    with stream:
        assert torch.accelerator.current_stream() == stream
        assert module.current_stream() == stream
    with pytest.raises(ValueError, match="out"), stream:
        raise ValueError("out")
    assert torch.accelerator.current_stream() == default
    with module.stream(stream):
        assert torch.accelerator.current_stream() == stream
    torch.accelerator.set_stream(stream)
    assert torch.accelerator.current_stream() == stream
    torch.accelerator.set_stream(default)
    assert torch.Stream(device, priority=-1).device.type == torch.device(device).type


def test_many_streams(device):
    streams = [torch.Stream(device) for _ in range(100)]
    assert len({s.stream_id for s in streams}) > 8
    results = []
    for i, stream in enumerate(streams):
        with stream:
            results.append(torch.full((1000,), float(i), device=device) * 2)
    torch.accelerator.synchronize()
    assert [r[0].item() for r in results] == [2.0 * i for i in range(100)]


def test_event_orders_streams(device):
    a, b = torch.Stream(device), torch.Stream(device)
    torch.manual_seed(0)
    host = torch.randn(400, 400)
    for _ in range(5):
        with a:
            x = host.to(device)
            for _ in range(4):
                x = x @ x / 20
            done = a.record_event()
        with b:
            b.wait_event(done)
            y = x + 1
        x.record_stream(b)
        b.synchronize()
        assert torch.equal(y.cpu(), x.cpu() + 1)
    with a:
        z = torch.ones(100, device=device)
        z.record_stream(b)
    b.wait_stream(a)
    with b:
        total = z.sum()
        del z
    a.synchronize()
    with a:
        torch.full((100,), 5.0, device=device)
    b.synchronize()
    assert total.item() == 100


def test_events(device):
    start, end = (torch.Event(device, enable_timing=True) for _ in range(2))
    assert torch.Event(device).query()
    start.record()
    x = torch.randn(600, 600, device=device)
    for _ in range(5):
        x = x @ x
    end.record()
    end.synchronize()
    assert start.query()
    assert 0 < start.elapsed_time(end) < 60_000
    with pytest.raises((RuntimeError, ValueError)):
        torch.Event(device).elapsed_time(end)
    end.record()
    torch.accelerator.current_stream().wait_event(end)
    assert torch.accelerator.current_stream().record_event() is not None
    torch.accelerator.synchronize()
    assert torch.accelerator.current_stream().query()


def test_streams_of_two_devices(device, second):
    there = torch.Stream(second)
    with there:
        assert torch.accelerator.current_device_index() == 1
        x = torch.ones(1000, device=second) * 3
        event = there.record_event()
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.current_stream().wait_event(event)
    assert x.to(device).sum().item() == 3000


def test_work_is_behind_the_caller(python):
    queued, total, busy = python(
        """
        import time
        x = torch.randn(1500, 1500).to(D)
        (x @ x).cpu()
        torch.accelerator.synchronize()
        start = time.perf_counter()
        for _ in range(12):
            y = x @ x
        busy = not torch.accelerator.current_stream().query()
        queued = time.perf_counter() - start
        torch.accelerator.synchronize()
        print(json.dumps([queued, time.perf_counter() - start, busy]))
        """,
        GRAFT_HOST_MODE="async",
    ).value()
    assert busy
    assert queued < total / 2


def test_pinned_copy_is_behind_the_caller(python):
    assert python(
        """
        x = torch.randn(2000, 2000).to(D)
        (x @ x).cpu()
        host = torch.empty(2000, 2000, pin_memory=True)
        for _ in range(8):
            y = x @ x
        host.copy_(y, non_blocking=True)
        event = torch.accelerator.current_stream().record_event()
        behind = not event.query()
        event.synchronize()
        print(json.dumps([behind, bool(torch.equal(host, y.cpu()))]))
        """,
        GRAFT_HOST_MODE="async",
    ).value() == [True, True]


def test_late_error_names_its_operator(python):
    ran = python(
        """
        x = torch.ones(1000).to(D)
        try:
            for _ in range(30):
                x = x.tanh()
            torch.accelerator.synchronize()
            x.cpu()
            print("nothing")
        except RuntimeError as error:
            print(str(error).replace(chr(10), " "))
        print(torch.ones(3, device=D).tolist())
        """,
        GRAFT_HOST_MODE="async", GRAFT_HOST_FAULTS="launch:9",
    ).good()  # fmt: skip
    first, last = ran.out.strip().splitlines()[-2:]
    assert "tanh" in first
    assert last == "[1.0, 1.0, 1.0]"
