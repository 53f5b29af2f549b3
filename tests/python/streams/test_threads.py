"""Threads and streams: one device for several threads, each with its own current stream."""

import threading

import pytest
import torch

pytestmark = pytest.mark.both_modes


def test_a_wait_lets_other_threads_run(asynchronous):
    assert asynchronous["steps beside a wait"] >= 5


def test_each_thread_has_its_own_current_stream_and_device(device, module):
    stream, seen = torch.Stream(device), {}

    def look():
        seen["stream"] = torch.accelerator.current_stream()
        seen["device"] = torch.accelerator.current_device_index()
        torch.accelerator.set_device_index(1)
        torch.accelerator.set_stream(torch.Stream(device))

    with stream:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert torch.accelerator.current_stream() == stream
    assert seen == {"stream": module.default_stream(0), "device": 0}
    assert torch.accelerator.current_device_index() == 0


def test_threads_use_one_device_at_once(device):
    weight = torch.full((64, 64), 1 / 64, device=device)
    barrier, results = threading.Barrier(3), {}

    def work(i):
        x = torch.full((64, 64), float(i), device=device)
        torch.accelerator.synchronize()
        barrier.wait()
        with torch.Stream(device) as stream:
            for _ in range(30):
                x = torch.nn.functional.relu(x @ weight)
        stream.synchronize()
        results[i] = x.cpu()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for i in range(3):
        torch.testing.assert_close(results[i], torch.full((64, 64), float(i)))


def test_threads_may_be_the_first_to_use_the_devices(python):
    python("""
        import threading
        found = []
        def work(i):
            found.append(torch.tensor([1.0]).to(f"{D}:{i % 2}").item())
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert found == [1.0] * 6, found
        """).good()
