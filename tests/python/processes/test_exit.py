"""The process ends cleanly: with work queued, tensors alive, threads running, after errors."""

import signal

import pytest

pytestmark = pytest.mark.both_modes

ENDINGS = {
    "queued": "x = torch.randn(1200, 1200).to(D)\nfor _ in range(10): x = x @ x / 40",
    "alive": "import builtins\nbuiltins.kept = torch.ones(10, device=D)",
    "pinned": "x = torch.ones(10**6).pin_memory()\ny = x.to(D, non_blocking=True)",
    "stream": "s = torch.Stream(D)\nwith s: x = torch.ones(10**6, device=D)\ns.record_event()",
    "backward": "x = torch.ones(9, device=D, requires_grad=True)\n(x * 2).sum().backward()",
    "thread": "import threading\nused = threading.Event()\nthreading.Thread(daemon=True, target="
    "lambda: (torch.ones(9, device=D) + 1, used.set(), threading.Event().wait())).start()\n"
    "used.wait()",
    "unused": "pass",
    "counted": "torch.accelerator.device_count()",
}


@pytest.mark.parametrize("mode", ["async", "inline"])
@pytest.mark.parametrize("name", ENDINGS)
def test_clean_exit(python, name, mode):
    ran = python(f"exec({ENDINGS[name]!r})\nprint('end')", timeout=60, GRAFT_HOST_MODE=mode).good()
    assert ran.out.strip().endswith("end")
    assert ran.err.strip() == ""


def test_autograd_s_threads_end_first(python):
    ran = python(
        """
        from torch_graft import _C
        def threads():
            tasks = os.listdir("/proc/self/task")
            names = [open(f"/proc/self/task/{task}/comm").read() for task in tasks]
            return sum(name.startswith("pt_autograd") for name in names)
        x = torch.ones(9, device=D, requires_grad=True)
        (x * 2).sum().backward()
        before = threads()
        _C.shutdown()
        print(json.dumps([before, threads()]))
        """
    )
    before, after = ran.value()
    assert before > 0
    assert after == 0


def test_exit_code_of_an_error(python):
    ran = python("torch.ones(3, device=D).view(7)")
    assert ran.code == 1
    assert "shape '[7]' is invalid" in ran.err


def test_interrupt_ends_a_wait(python):
    ran = python(
        """
        import signal, threading
        x = torch.randn(2000, 2000).to(D)
        for _ in range(30): y = x @ x
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            torch.accelerator.synchronize()
            import time; time.sleep(2)
        except KeyboardInterrupt:
            print("interrupted")
        """,
        GRAFT_HOST_MODE="async",
    ).good()
    assert "interrupted" in ran.out


def test_threads_that_compute_to_the_end(python):
    """They get an error or nothing at all, and never memory that was given back.

    Python ends a daemon thread wherever it asks for Python's lock, which C++ answers by an abort at times.
    """
    ran = python(
        """
        import threading, time
        x = torch.randn(300, 300).to(D)
        def compute(work):
            while True:
                work()
        works = [
            lambda: (x @ x).sum().item(),
            lambda: torch.linalg.eigvals(x),
            lambda: torch.empty(10**6, device=D).fill_(1).record_stream(torch.Stream(D)),
            lambda: torch.accelerator.current_stream().record_event().synchronize(),
        ]
        for work in works:
            threading.Thread(daemon=True, target=compute, args=(work,)).start()
        time.sleep(0.5)
        """,
        timeout=60,
        GRAFT_FALLBACK="off",
    )
    assert ran.code in (0, -signal.SIGABRT), ran.err
    assert ran.code == 0 or "terminate called without an active exception" in ran.err
