"""Every call of the profilers on a driver that measures no time: no error, and no made-up figure."""

import json

import pytest

from sandbox import ROOT, build_c

PRELUDE = """
    import math, warnings
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
    BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    warnings.simplefilter("ignore")
    def work():
        with record_function("marked"):
            x = torch.arange(6.0).to(D)
            y = (x * 2 + 1).sum()
            torch.zeros(5, device=D)
            torch.accelerator.synchronize()
        return y.item()
    work()
    def sound(rows):
        for row in rows:
            if "): " in row.key:
                continue  # a Python function, whose own time PyTorch makes negative on the CPU, too
            for name in dir(row):
                if not name.startswith("_") and "time" in name:
                    value = getattr(row, name)
                    if isinstance(value, (int, float)):
                        assert math.isfinite(value) and 0 <= value < 1e9, (row.key, name, value)
"""
# Each prints "done" in the end.
CALLS = {
    "plain": "with profile() as p: work()\n    sound(p.key_averages())",
    "both": "with profile(activities=BOTH) as p: work()\n    sound(p.key_averages())",
    "device alone": "with profile(activities=BOTH[1:]) as p: work()\n    sound(p.key_averages())",
    "host alone": "with profile(activities=BOTH[:1]) as p: work()\n    sound(p.key_averages())",
    "everything": "with profile(activities=BOTH, record_shapes=True, profile_memory=True,\n"
                  "                 with_stack=True, with_flops=True, with_modules=True) as p: work()\n"
                  "    sound(p.key_averages(group_by_input_shape=True))\n"
                  "    sound(p.key_averages(group_by_stack_n=3))",
    "tables": """with profile(activities=BOTH, profile_memory=True) as p: work()
    for key in ("cpu_time", "device_time", "cpu_time_total", "device_time_total", "cpu_memory_usage",
                "device_memory_usage", "self_cpu_time_total", "self_device_time_total",
                "self_cpu_memory_usage", "self_device_memory_usage", "count",
                "privateuse1_time_total", "self_privateuse1_time_total"):
        try:
            text = p.key_averages().table(sort_by=key, row_limit=5)
        except AttributeError:
            assert "privateuse1" in key
        else:
            assert "nan" not in text and "inf" not in text, text
            assert "aten::" in text""",
    "total": "with profile(activities=BOTH) as p: work()\n"
             "    total = p.key_averages().total_average()\n"
             "    sound([total])\n"
             "    assert total.device_time_total == 0 < total.self_cpu_time_total",
    "schedule": """
    seen = []
    with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda p: seen.append(len(p.events()))) as p:
        for _ in range(8):
            work()
            p.step()
    assert len(seen) == 2 and min(seen) > 5, seen""",
    "trace": """
    path = os.environ["TRACE"]
    with profile(activities=BOTH, record_shapes=True) as p: work()
    p.export_chrome_trace(path)
    events = json.load(open(path))["traceEvents"]
    times = [e["ts"] for e in events if "ts" in e and e.get("ph") == "X"]
    assert max(times) - min(times) < 60e6, "one event is of another time"
    assert all(0 <= e.get("dur", 0) < 60e6 for e in events)
    calls = {e["name"] for e in events if e.get("cat") == "privateuse1_runtime"}
    assert D + "MemcpyAsync" in calls, calls
    assert not [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]""",
    "stacks": """
    with profile(activities=BOTH, with_stack=True, experimental_config=torch._C._profiler.
                 _ExperimentalConfig(verbose=True)) as p: work()
    p.export_stacks(os.environ["TRACE"], "self_cpu_time_total")
    p.export_stacks(os.environ["TRACE"], "self_privateuse1_time_total")""",
    "memory timeline": """
    with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True) as p: work()
    p.export_memory_timeline(os.environ["TRACE"], device=D + ":0")""",
    "old": "with torch.autograd.profiler.profile(use_device=D) as p: work()\n"
           "    sound(p.key_averages())\n"
           "    text = p.key_averages().table(sort_by='self_device_time_total')\n"
           "    assert 'nan' not in text\n"
           "    assert p.total_average().device_time_total == 0",
    "old with Kineto": "with torch.autograd.profiler.profile(use_device=D, use_kineto=True) as p: work()\n"
                       "    sound(p.key_averages())",
    "old without Kineto": "with torch.autograd.profiler.profile(use_device=D, use_kineto=False) as p: work()\n"
                          "    sound(p.key_averages())\n"
                          "    p.export_chrome_trace(os.environ['TRACE'])\n"
                          "    assert all(math.isfinite(e.time_range.elapsed_us()) for e in p.function_events)",
    "emit_itt": "with torch.autograd.profiler.emit_itt(): work()",
    "nested": "with profile(activities=BOTH) as p:\n"
              "        with record_function('outer'), record_function('inner'): work()\n"
              "    assert {'outer', 'inner', 'marked'} <= {row.key for row in p.key_averages()}",
    "metadata": "with profile(activities=BOTH) as p:\n"
                "        p.add_metadata('a', 'b'); p.add_metadata_json('c', '[1]'); work()\n"
                "        p.toggle_collection_dynamic(False, BOTH); work()\n"
                "        p.toggle_collection_dynamic(True, BOTH); work()",
    "backward": "w = torch.ones(3, device=D, requires_grad=True)\n"
                "    with profile(activities=BOTH) as p: (w * 2).sum().backward()\n"
                "    sound(p.key_averages())",
    "threads": """
    import threading
    with profile(activities=BOTH) as p:
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    sound(p.key_averages())""",
    "streams": """
    with profile(activities=BOTH) as p:
        with torch.Stream(D): work()
    sound(p.key_averages())""",
    "observer": """
    from torch.profiler import ExecutionTraceObserver
    seer = ExecutionTraceObserver().register_callback(os.environ["TRACE"])
    with profile(activities=BOTH, execution_trace_observer=seer) as p: work()
    sound(p.key_averages())""",
    "events": """
    first, last = (torch.Event(D, enable_timing=True) for _ in range(2))
    first.record(); work(); last.record(); last.synchronize()
    try:
        first.elapsed_time(last)
    except RuntimeError as error:
        assert "graft:0 (driver 'tiny') does not time events: its driver lacks event_elapsed" in str(error), error
    else:
        raise AssertionError("a time out of nowhere")""",
    "memory history": """
    m = torch.get_device_module(D)
    m.memory._record_memory_history(); work(); m.memory._snapshot(); m.memory._dump_snapshot(os.environ["TRACE"])
    m.memory._record_memory_history(enabled=None)
    m.statistics(0); m.memory_summary()""",
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return build_c(tmp_path_factory.mktemp("timeless") / "tiny.so",
                   (ROOT / "tests/drivers/tiny.c").read_text())  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_call(tiny, tmp_path, python, name):
    ran = python(
        PRELUDE + "\n    " + CALLS[name].lstrip("\n").removeprefix("    ") + "\n    print('done')",
        GRAFT_DRIVER_PATH=tiny, GRAFT_DEVICES="tiny", TRACE=str(tmp_path / "trace.json"),
    ).good()  # fmt: skip
    assert ran.out.strip().endswith("done")
    assert "Traceback" not in ran.err, ran.err


def test_the_work_is_right_while_it_is_profiled(tiny, python):
    ran = python(
        PRELUDE + "\n    with profile(activities=BOTH): print(json.dumps(work()))",
        GRAFT_DRIVER_PATH=tiny, GRAFT_DEVICES="tiny",
    ).good()  # fmt: skip
    assert json.loads(ran.out) == 36.0
