"""Streams, events and threads: what PyTorch's tests of CUDA ask of them (docs/use/parity.md)."""

import threading

import pytest
import torch

from sandbox import ROOT, build_c, interpret

pytestmark = pytest.mark.both_modes

ASYNCHRONOUS = """
    import threading, time
    def busy(where, n):
        x = torch.randn(900, 900, device=where)
        for _ in range(n):
            x = x @ x / 30
        return x
    found = {}
    busy(D, 1)
    torch.accelerator.synchronize()
    here, there = torch.accelerator.current_stream(0), torch.accelerator.current_stream(1)

    event = torch.Event(D)
    unmarked = event.query()
    busy(D, 12)
    event.record()
    pending = event.query()
    event.synchronize()
    found["event"] = [unmarked, pending, event.query()]
    here.synchronize()

    idle = []
    for _ in range(20):
        busy(D, 1)
        event.record()
        event.synchronize()
        idle.append(here.query())
    found["idle after its last event"] = all(idle)

    busy(f"{D}:1", 12)
    before = [here.query(), there.query()]
    there.synchronize()
    found["two devices"] = [before, [here.query(), there.query()]]

    busy(D, 12)
    here.record_event(event)
    there.wait_event(event)
    there.synchronize()
    found["wait across devices"] = [event.query(), there.query()]

    for to, pinned in ((D, True), ("cpu", False)):
        for non_blocking in (True, False):
            source = torch.randn(100_000, device="cpu" if pinned else D)
            source = source.pin_memory() if pinned else source
            torch.accelerator.synchronize()
            busy(D, 12)
            moved = source.to(to, non_blocking=non_blocking)
            done = here.query()
            torch.accelerator.synchronize()
            right = torch.equal(moved.cpu(), source.cpu())
            found[f"to {'cpu' if to == 'cpu' else 'device'} {non_blocking}"] = [
                done, right, moved.is_pinned()]

    side = torch.Stream(D)
    host, back = torch.ones(500_000).pin_memory(), torch.empty(500_000, pin_memory=True)
    target = torch.zeros(500_000, device=D)
    torch.accelerator.synchronize()
    busy(D, 40)
    with side:
        target.copy_(host, non_blocking=True)
        back.copy_(target, non_blocking=True)
    side.synchronize()
    found["overlap"] = [not here.query(), bool((back == 1).all())]
    torch.accelerator.synchronize()

    from torch.profiler import ProfilerActivity, profile
    def spans_of_a_run():
        activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
        with profile(activities=activities) as profiled:
            busy(D, 20)
            with side:
                for _ in range(8):
                    target.copy_(host, non_blocking=True)
            torch.accelerator.synchronize()
        profiled.export_chrome_trace(os.environ["TRACE"])
        events = [e for e in json.load(open(os.environ["TRACE"]))["traceEvents"] if "dur" in e]
        return [[(e["ts"], e["ts"] + e["dur"], e["args"]["stream"]) for e in events
                 if e.get("cat") == kind] for kind in ("kernel", "gpu_memcpy")]
    traced = []
    for _ in range(10):  # a busy machine may give the copies no turn before the kernels are done
        kernels, copies = spans_of_a_run()
        overlaps = sum(start < until and begin < end and one != other
                       for start, end, one in copies for begin, until, other in kernels)
        traced.append([len(kernels), len(copies), overlaps])
        if overlaps:
            break
    found["overlap in the trace"] = traced

    busy(D, 40)
    left = threading.Event()
    waiter = threading.Thread(target=lambda: (here.synchronize(), left.set()))
    waiter.start()
    steps = 0
    while not left.is_set():
        time.sleep(0.002)
        steps += 1
    waiter.join()
    found["steps beside a wait"] = steps
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def asynchronous(tmp_path_factory):
    """What a program saw of a device that runs behind it (whatever mode the other tests run in)."""
    trace = str(tmp_path_factory.mktemp("trace") / "trace.json")
    settings = {"GRAFT_HOST_MODE": "async", "GRAFT_HOST_DEVICES": "2", "TRACE": trace}
    return interpret(ASYNCHRONOUS, **settings).value()


def test_an_event_is_done_when_its_work_is(asynchronous):
    assert asynchronous["event"] == [True, False, True]


def test_a_stream_is_idle_once_the_event_at_its_end_is_done(asynchronous):
    assert asynchronous["idle after its last event"]


def test_streams_of_two_devices_are_asked_apart(asynchronous):
    assert asynchronous["two devices"] == [[True, False], [True, True]]


def test_a_stream_waits_for_an_event_of_another_device(asynchronous):
    assert asynchronous["wait across devices"] == [True, True]


def test_only_non_blocking_copies_of_pinned_memory_return_early(asynchronous):
    """done at the return, right, pinned: the result on the CPU is pinned where nothing blocked."""
    assert asynchronous["to device True"] == [False, True, False]
    assert asynchronous["to device False"] == [True, True, False]
    assert asynchronous["to cpu True"] == [False, True, True]
    assert asynchronous["to cpu False"] == [True, True, False]


def test_copies_overlap_with_compute(asynchronous):
    """Copies on a second stream, in and out, are done while the first still computes."""
    assert asynchronous["overlap"] == [True, True]


def test_the_trace_shows_a_copy_beside_kernels_of_another_stream(asynchronous):
    runs = asynchronous["overlap in the trace"]
    assert all(kernels >= 40 and copies == 8 for kernels, copies, _ in runs), runs
    assert runs[-1][2] > 0, runs


def test_a_wait_lets_other_threads_run(asynchronous):
    assert asynchronous["steps beside a wait"] >= 5


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


@pytest.mark.parametrize("priority", [-5, -1, 0, 1, 5])
def test_a_stream_of_any_priority_works(device, priority):
    stream = torch.Stream(device, priority=priority)
    assert stream != torch.Stream(device, priority=-priority if priority else 1)
    with stream:
        total = torch.ones(1000, device=device).cumsum(0)[-1]
    stream.synchronize()
    assert total.item() == 1000


def test_a_time_needs_two_timed_events_that_are_recorded(device, second):
    plain, timed = (torch.Event(device, enable_timing=on) for on in (False, True))
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(torch.Event(device, enable_timing=True))
    there = torch.Event(second, enable_timing=True)
    timed.record(torch.accelerator.current_stream(0))
    there.record(torch.accelerator.current_stream(1))
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


def test_a_copy_between_devices_is_ordered_on_both_current_streams(device, second):
    x, y = torch.zeros(50, device=device), torch.zeros(50, device=second)
    first, last = torch.Stream(device), torch.Stream(device)
    there = torch.Stream(second)
    more = x + 1
    torch.accelerator.synchronize(0)
    with first:
        z = torch.randn(600, 600, device=device)
        for _ in range(8):
            z = z @ z / 30
        with there:
            y.copy_(more)
    with last, there:
        y.copy_(x)
    there.synchronize()
    assert not y.cpu().any()


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


def test_other_devices_are_refused_with_torch_s_words(device, module):
    expected = f"Expected a {device} device, but got: cpu"
    for call in (module.synchronize, module.default_stream, module.memory_allocated):
        with pytest.raises(ValueError, match=expected):
            call("cpu")
        with pytest.raises(ValueError, match=expected):
            call(torch.device("cpu"))
    with pytest.raises(RuntimeError, match="Invalid device string"):
        module._utils._get_device_index(f"{device}0", optional=True)
    with pytest.raises(ValueError, match="cpu"):
        torch.accelerator.synchronize("cpu")
    with pytest.raises(RuntimeError, match="there is no device"):
        torch.accelerator.current_stream(torch.accelerator.device_count())


def test_properties_of_a_device_are_one_object(module):
    assert module.get_device_properties(0) == module.get_device_properties(None)
    assert module.get_device_properties() == module.get_device_properties(0)
    assert module.get_device_properties(1) != module.get_device_properties(0)
    assert module.get_device_name(None) == module.get_device_name(0)
    assert module.get_device_capability(None) == module.get_device_capability(0)


def test_a_device_has_a_universal_id(module, python):
    ids = [module.get_device_properties(i).uuid for i in (0, 1)]
    assert ids[0] != ids[1]
    assert [(len(str(one)), len(one.bytes)) for one in ids] == [(36, 16)] * 2
    others = python("""
        of = torch.get_device_module(D).get_device_properties
        print(json.dumps([str(of(i).uuid) for i in (0, 1)]))
    """)
    assert others.value() == [str(one) for one in ids]
