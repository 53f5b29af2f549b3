"""torch.profiler on the device: kernels, copies and waits on tracks, tied to their ops."""

import json
import subprocess
import sys
import threading
import time

import pytest
import torch
from torch.autograd import DeviceType
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from sandbox import ROOT, build_c, interpret

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


@pytest.fixture(autouse=True)
def _quiet(device):
    torch.ones(3, device=device).add(1)
    torch.accelerator.synchronize()


def profiled(work, activities=BOTH, **options):
    with profile(activities=activities, **options) as prof:
        work()
        torch.accelerator.synchronize()
    return prof


def trace_of(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())


def on_device(prof):
    return [e for e in prof.events() if e.device_type == DeviceType.PrivateUse1]


def test_the_activity_is_supported():
    assert ProfilerActivity.PrivateUse1 in torch.profiler.supported_activities()


def test_device_time_belongs_to_the_op_that_launched(device):
    a = torch.randn(256, 256, device=device)
    prof = profiled(lambda: (a @ a).relu().sum())
    averages = {row.key: row for row in prof.key_averages()}
    for op in ("aten::mm", "aten::relu", "aten::sum"):
        assert averages[op].device_time_total > 0, op
        assert averages[op].device_type == DeviceType.CPU
    assert averages["aten::matmul"].self_device_time_total == 0
    assert averages["aten::matmul"].device_time_total == averages["aten::mm"].device_time_total
    table = prof.key_averages().table(sort_by="self_device_time_total")
    assert device.upper() in table.upper()
    assert "aten::mm" in table


def test_kernels_copies_and_fills_have_tracks_names_and_bytes(device, tmp_path):
    def work():
        x = torch.arange(1000.0).to(device)
        y = torch.zeros(1000, device=device)
        side = torch.Stream(device)
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            z = x.exp() + y
        z.cpu()

    events = trace_of(profiled(work), tmp_path)["traceEvents"]
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    names = [e["name"] for e in work]
    assert "Memcpy HtoD" in names
    assert "Memcpy DtoH" in names
    assert any("exp" in name for name in names)
    assert all(e["ph"] == "X" and e["dur"] >= 0 for e in work)
    up = next(e for e in work if e["name"] == "Memcpy HtoD")
    assert up["args"]["bytes"] == 4000
    assert up["args"]["op"] == "aten::copy_"
    exp = next(e for e in work if "exp" in e["name"])
    assert exp["tid"] != up["tid"], "another stream is another track"
    assert exp["pid"] == up["pid"] == 0
    labels = {e["args"].get("labels") or e["args"].get("name") for e in events if e["ph"] == "M"}
    driver = torch.get_device_module(device).get_device_properties(0).driver
    assert any(driver in str(label) for label in labels), "the track bears the driver's name"
    calls = [e for e in events if e.get("cat") == "privateuse1_runtime"]
    assert {f"{device}LaunchKernel", f"{device}MemcpyAsync", f"{device}Synchronize"} <= {
        c["name"] for c in calls
    }
    waits = [e for e in events if e["name"] == "Stream Synchronize"]
    assert waits
    assert all(w["pid"] == 0 for w in waits)


def test_flows_lead_from_the_call_to_the_work(device, tmp_path):
    x = torch.randn(64, device=device)
    events = trace_of(profiled(lambda: x.sin()), tmp_path)["traceEvents"]
    starts = {e["id"] for e in events if e.get("cat") == "ac2g" and e["ph"] == "s"}
    ends = {e["id"] for e in events if e.get("cat") == "ac2g" and e["ph"] == "f"}
    kernel = next(e for e in events if e.get("cat") == "kernel")
    assert kernel["args"]["correlation"] in starts & ends
    call = next(e for e in events if e.get("cat") == "privateuse1_runtime"
                and e["args"]["correlation"] == kernel["args"]["correlation"])  # fmt: skip
    op = next(e for e in events if e["name"] == "aten::sin")
    assert op["ts"] <= call["ts"] + 1
    assert call["ts"] + call["dur"] <= op["ts"] + op["dur"] + 1
    assert kernel["ts"] >= call["ts"] - 1000  # both by the host's clock


def test_the_trace_is_valid(device, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).to(device)

    def work():
        with record_function("step"):
            model(torch.randn(4, 8, device=device)).sum().backward()

    trace = trace_of(profiled(work, record_shapes=True, profile_memory=True), tmp_path)
    assert isinstance(trace["traceEvents"], list)
    for event in trace["traceEvents"]:
        assert event["ph"] in "XMsfiCBEbenR", event
        assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert isinstance(event["ts"], (int, float)) and event["dur"] >= 0  # noqa: PT018
            assert "pid" in event and "tid" in event  # noqa: PT018
    marks = [e for e in trace["traceEvents"] if e["name"] == "step"]
    assert {m["cat"] for m in marks} == {"user_annotation", "gpu_user_annotation"}
    annotated = next(m for m in marks if m["cat"] == "gpu_user_annotation")
    kernels = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
    assert annotated["ts"] <= min(k["ts"] for k in kernels) + 0.001


def test_backward_runs_on_its_thread_and_is_tied_too(device):
    x = torch.randn(32, 32, device=device, requires_grad=True)
    prof = profiled(lambda: (x @ x).sum().backward())
    averages = {row.key: row for row in prof.key_averages()}
    assert averages["autograd::engine::evaluate_function: MmBackward0"].device_time_total > 0


def test_memory_is_counted(device):
    prof = profiled(lambda: torch.zeros(1000, device=device).add(1), profile_memory=True)
    averages = {row.key: row for row in prof.key_averages()}
    assert averages["aten::add"].device_memory_usage >= 4000
    assert averages["aten::empty"].device_memory_usage >= 4000


def test_kinds_of_activity_are_chosen(device):
    x = torch.ones(100, device=device)

    def shown(*kinds):
        chosen = [ProfilerActivity.CPU, {ProfilerActivity.PrivateUse1: list(kinds)}]
        return {event.name for event in on_device(profiled(lambda: (x + 1).cpu(), chosen))}

    assert shown("GPU_MEMCPY") == {"Memcpy DtoH"}
    kernels = shown("CONCURRENT_KERNEL")
    assert len(kernels) == 1
    assert shown("CONCURRENT_KERNEL", "GPU_MEMCPY") == kernels | {"Memcpy DtoH"}
    assert shown() == set()
    with pytest.raises(RuntimeError, match="CPU_OP"):
        shown("CPU_OP")
    with pytest.raises(ValueError, match="more than once"):
        profiled(x.neg, [ProfilerActivity.CPU, {ProfilerActivity.CPU: ["CPU_OP"]}])


def test_an_allocation_that_fails_is_an_event(device, tmp_path):
    def work():
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(2**50, dtype=torch.uint8, device=device)

    trace = trace_of(profiled(work, profile_memory=True), tmp_path)
    (event,) = [e for e in trace["traceEvents"] if e["name"] == "[OutOfMemory]"]
    assert event["args"]["Bytes"] == 2**50
    assert event["args"]["Device Id"] == 0
    assert event["args"]["Total Reserved"] >= event["args"]["Total Allocated"]


def test_schedule_keeps_the_active_steps(device):
    seen = []
    x = torch.randn(16, device=device)
    with profile(
        activities=BOTH,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=seen.append,
    ) as prof:
        for _ in range(6):
            x.cos()
            prof.step()
    assert len(seen) == 1
    cosines = [e for e in prof.events() if e.name == "aten::cos"]
    assert len(cosines) == 2
    assert all(e.kernels for e in cosines)


def test_cpu_only_profiling_traces_no_commands(device):
    x = torch.randn(16, device=device)
    prof = profiled(lambda: x.cos(), activities=[ProfilerActivity.CPU])
    assert not on_device(prof)
    assert any(e.name == "aten::cos" for e in prof.events())


def test_device_alone(device):
    x = torch.randn(16, device=device)
    prof = profiled(lambda: x.cos(), activities=[ProfilerActivity.PrivateUse1])
    assert any("cos" in e.name for e in on_device(prof))


def test_two_devices_have_two_tracks(device, second, tmp_path):
    def work():
        for place in (device, second):
            torch.randn(100, device=place).exp()
        torch.accelerator.synchronize(1)

    kernels = [
        e for e in trace_of(profiled(work), tmp_path)["traceEvents"] if e.get("cat") == "kernel"
    ]
    assert {e["pid"] for e in kernels} == {0, 1}
    assert {e["args"]["device"] for e in kernels} == {0, 1}


def test_graph_replays_are_traced(device, module):
    x = torch.ones(8, device=device)
    graph = torch.accelerator.Graph()
    with torch.Stream(device), graph:
        y = x.exp().log()
    prof = profiled(graph.replay)
    assert y.isfinite().all()
    assert any(e.name == f"{device}GraphLaunch" for e in prof.events())
    assert {"aten::exp", "aten::log"} <= {e.name for e in on_device(prof)} or len(
        on_device(prof)
    ) >= 2


def test_copies_that_do_not_block_return_before_they_are_done(python):
    ran = python(
        """
        import tempfile
        from torch.profiler import ProfilerActivity, profile
        big = torch.ones(8 << 20).pin_memory()
        host, place = torch.empty_like(big).pin_memory(), torch.empty_like(big, device=D)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
            place.copy_(big, non_blocking=True)
            host.copy_(place, non_blocking=True)
            torch.accelerator.synchronize()
        path = os.path.join(tempfile.mkdtemp(), "trace.json")
        prof.export_chrome_trace(path)
        events = json.load(open(path))["traceEvents"]
        end = lambda e: e["ts"] + e["dur"]
        copies = {e["args"]["correlation"]: e for e in events if e.get("cat") == "gpu_memcpy"}
        calls = {e["args"]["correlation"]: e for e in events if e["name"] == f"{D}MemcpyAsync"}
        assert len(copies) == 2, copies
        assert end(calls[max(copies)]) <= end(copies[max(copies)])
        """,
        GRAFT_HOST_MODE="async",
    )
    ran.good()


def test_a_failing_callback_does_not_disturb_the_device(device):
    def fail(prof):
        raise RuntimeError("planted")

    x = torch.ones(4, device=device)
    with (
        pytest.raises(RuntimeError, match="planted"),
        profile(activities=BOTH, on_trace_ready=fail),
    ):
        y = x + 1
    assert y.tolist() == [2.0] * 4
    assert on_device(profiled(lambda: x + 1))


def test_an_exception_inside_ends_the_profile(device):
    x = torch.ones(4, device=device)
    with pytest.raises(ZeroDivisionError):
        profiled(lambda: x.add(1 // 0))
    assert on_device(profiled(lambda: x + 1))


def test_threads_profile_together(device):
    def work():
        threads = [
            threading.Thread(target=lambda: torch.ones(50, device=device).exp()) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    prof = profiled(work)
    assert sum("exp" in e.name for e in on_device(prof)) == 3


def test_results_do_not_change(device):
    torch.manual_seed(4)
    model = torch.nn.Conv2d(2, 3, 3).to(device)
    x = torch.randn(2, 2, 8, 8, device=device)
    plain = F.relu(model(x))
    kept = []
    profiled(lambda: kept.append(F.relu(model(x))))
    assert kept[0].equal(plain)


def test_a_long_profile_keeps_every_launch(device):
    x = torch.zeros(1, device=device)
    count = 3000

    def work():
        for _ in range(count):
            x.add_(1)

    start = time.perf_counter()
    prof = profiled(work)
    assert x.item() == count
    assert sum(len(e.kernels) for e in prof.events() if e.name == "aten::add_") == count
    assert time.perf_counter() - start < 60


def test_the_example_draws_a_picture(tmp_path):
    script = ROOT / "examples" / "profiling.py"
    ran = subprocess.run(
        [sys.executable, str(script), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Self GRAFT time total" in ran.stdout
    picture = (tmp_path / "trace.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["name"] for event in events if event.get("cat") == "cpu_op"}
    assert {"aten::convolution_overrideable", "aten::threshold_backward", "aten::mm"} <= names


@pytest.mark.parametrize("use_kineto", [False, True])
def test_the_older_form_has_plausible_times(device, use_kineto):
    x = torch.ones(64, 64, device=device)
    began = time.perf_counter_ns()
    with torch.autograd.profiler.profile(use_device=device, use_kineto=use_kineto) as prof:
        (x @ x).sum().item()
    took_us = (time.perf_counter_ns() - began) / 1000
    averages = prof.key_averages()
    assert 0 < averages.total_average().self_cpu_time_total <= took_us
    # As its table does: Kineto tells commands beside the operators that queue them, and a wait as an
    # annotation beside the commands it waits for.
    commands = [one.self_device_time_total for one in averages if not one.is_user_annotation
                and (one.device_type != torch.autograd.DeviceType.CPU) == use_kineto]  # fmt: skip
    assert 0 < sum(commands) <= took_us
    assert "aten::mm" in prof.key_averages().table()


@pytest.mark.host_only
def test_a_driver_without_times_has_tables(tmp_path):
    """Its waits alone would be all that the table takes for the device's work."""
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    tables = interpret(
        """
        from torch.profiler import ProfilerActivity, profile
        tables = []
        for activities in ([ProfilerActivity.PrivateUse1],
                           [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]):
            with profile(activities=activities) as prof:
                (torch.ones(8, 8, device=D) * 2).cpu()
                torch.get_device_module(D).synchronize()
            tables.append(prof.key_averages().table())
        print(json.dumps(tables))
        """,
        GRAFT_DRIVER_PATH=tiny, GRAFT_DEVICES="tiny",
    ).value()  # fmt: skip
    assert all("Self CPU" in table for table in tables)
    assert "aten::mul" in tables[1]


@pytest.mark.one_mode
def test_without_a_device_the_cpu_is_profiled(python):
    python(
        """
        from torch.profiler import profile
        with profile() as profiler:
            torch.ones(2) + 1
        assert any(row.key == "aten::add" for row in profiler.key_averages())
        """,
        GRAFT_DEVICES="nothing",
    ).good()
