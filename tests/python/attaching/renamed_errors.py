# tests/python/attaching/renamed_errors.py: provokes errors and warnings on a device called zeta.
"""Prints a JSON object: what was done -> the text that Graft gave. The text of a step that gave none is
empty."""

import io
import json
import os
import sys
import warnings
from contextlib import redirect_stdout

import torch

import torch_graft
from torch_graft.cli import doctor

z = torch.zeta
x = torch.ones(4, device="zeta")
STEPS = {}


def step(work):
    STEPS[work.__name__] = work
    return work


@step
def out_of_memory():
    torch.empty(1 << 60, dtype=torch.uint8, device="zeta")


@step
def out_of_the_drivers_memory():
    torch.empty(z.get_device_properties().total_memory * 2, dtype=torch.uint8, device="zeta")


@step
def bad_device_index():
    torch.ones(1, device="zeta:40")


@step
def bad_index():
    x[torch.tensor([9], device="zeta")].tolist()


@step
def stream_of_the_cpu():
    z.set_stream(torch.Stream("cpu"))


@step
def stream_of_no_device():
    torch.Stream(device="zeta:40")


@step
def wait_of_no_device():
    z.synchronize("zeta:40")


@step
def device_of_another_type():
    z.synchronize("cpu")


@step
def memory_of_another_type():
    z.memory_allocated("cpu")


@step
def memory_fraction():
    z.set_per_process_memory_fraction(3.0)


@step
def memory_history():
    z.memory.record_memory_history("everything")


@step
def memory_pool():
    with z.use_mem_pool(7):
        pass


@step
def seed():
    z.manual_seed("seven")


@step
def generator_state():
    torch.Generator("zeta").set_state(torch.ones(3, dtype=torch.uint8))


@step
def sync_debug_mode():
    z.set_sync_debug_mode("error")
    try:
        x.sum().item()
    finally:
        z.set_sync_debug_mode("default")


@step
def sync_debug_warning():
    z.set_sync_debug_mode("warn")
    try:
        x.sum().item()
    finally:
        z.set_sync_debug_mode("default")


@step
def fallback_warning():
    z.fallback.reset()
    torch.linalg.eigvals(torch.eye(3, device="zeta"))


@step
def fallback_forbidden():
    with z.fallback.forbid():
        torch.linalg.eigvals(torch.eye(3, device="zeta"))


@step
def fallback_policy():
    z.fallback.set_policy("never")


@step
def unsupported_dtype():
    torch.ones(2, device="zeta", dtype=torch.bits8) + 1


@step
def other_devices_operand():
    x + torch.ones(4)


@step
def graph_replayed_before_capture():
    z.Graph().replay()


@step
def wait_in_a_capture():
    with z.graph(z.Graph()):
        (x + 1).sum().item()


@step
def capture_in_a_capture():
    with z.graph(z.Graph()), z.graph(z.Graph()):
        pass


@step
def graph_pool():
    with z.graph(z.Graph(), pool=(4, 4)):
        pass


@step
def pinned_device_tensor():
    x.pin_memory()


@step
def driver_path():
    z.load_driver("relative.so")


@step
def driver_that_is_none():
    z.load_driver(__file__)


@step
def optimized_on_two_devices():
    model = torch_graft.optimize(torch.nn.Linear(4, 4).zeta())
    model(torch.ones(2, 4))


@step
def inductor():
    torch.compile(lambda a: a + 1, backend="inductor")(x)


@step
def numpy_of_a_device_tensor():
    x.numpy()


@step
def foreign_pointer():
    z.caching_allocator_delete(4096)


@step
def sensor():
    z.temperature()


@step
def unknown_attribute():
    z.fan_speed()


@step
def forked_child():
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            torch.ones(1, device="zeta")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    text = os.read(read, 10000).decode()
    os.wait()
    return text


@step
def properties():
    return repr(z.get_device_properties()) + repr(z.devices()) + repr(x) + repr(z.current_stream())


@step
def memory_summary():
    return z.memory_summary()


@step
def profile():
    with torch.profiler.profile() as ran:
        (x @ x).item()
    return ran.key_averages().table()


@step
def memory_snapshot():
    z.memory.record_memory_history()
    kept = torch.ones(100, device="zeta")
    text = repr(z.memory_snapshot())
    z.memory.record_memory_history(enabled=None)
    return text + repr(kept.shape)


@step
def report_of_the_doctor():
    printed = io.StringIO()
    with redirect_stdout(printed):
        doctor.examine(whole=False)
    return printed.getvalue()


@step
def help_texts():
    texts = [z.__doc__, torch.ve.__doc__]
    for module in (z, torch.ve):
        for name in dir(module):
            value = getattr(module, name)
            texts.append(getattr(value, "__doc__", None) if name[0] != "_" else None)
            if isinstance(value, type(z)) and str(value.__name__).startswith(module.__name__):
                texts += [getattr(one, "__doc__", None) for one in vars(value).values()]
    return "\n".join(text for text in texts if text)


def run(work):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            text = work() or ""
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return "\n".join([str(text), *(str(one.message) for one in told)]).strip()


sys.stdout.flush()
print(json.dumps({name: run(work) for name, work in STEPS.items()}))
