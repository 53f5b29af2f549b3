"""Every function of torch.accelerator, and the attributes that torch looks up in torch.graft."""

import pytest
import torch

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

# pytorch looks these up by name in the module of a device.
ATTRIBUTES = """device is_available device_count current_device set_device synchronize
    _is_in_bad_fork manual_seed_all manual_seed initial_seed get_rng_state set_rng_state
    get_amp_supported_dtype Stream Event current_stream stream is_initialized default_generators
    _get_generator _lazy_init _initialized _utils get_device_properties get_device_name
    memory_summary memory_allocated memory_reserved max_memory_allocated max_memory_reserved
    memory_stats empty_cache reset_peak_memory_stats mem_get_info load_driver drivers fallback
    statistics"""


def test_module_has_what_torch_looks_up(device, module):
    missing = [name for name in ATTRIBUTES.split() if not hasattr(module, name)]
    assert missing == []
    assert callable(module._utils._get_device_index)
    assert module._utils._get_device_index(f"{device}:1") == 1
    assert set(module.get_amp_supported_dtype()) >= {torch.float16, torch.bfloat16}


def test_names_the_device(device, module):
    a = torch.accelerator
    assert a.is_available()
    assert a.current_accelerator().type == device
    assert a.current_accelerator(check_available=True).type == device
    assert a.device_count() == module.device_count() == 2
    assert torch.get_device_module() is module
    assert module.is_available()
    assert module.is_initialized() in (True, False)


def test_current_device(device, module):
    a = torch.accelerator
    assert a.current_device_index() == module.current_device() == 0
    a.set_device_index(1)
    assert torch.ones(1, device=device).get_device() == 1
    module.set_device(0)
    with a.device_index(1):
        assert a.current_device_index() == 1
        with module.device(0):
            assert module.current_device() == 0
        with module.device(torch.device(device, 1)):
            assert module.current_device() == 1
    assert a.current_device_index() == 0
    with a.device_index(None):
        assert a.current_device_index() == 0
    with torch.device(device):
        assert torch.ones(2).device.type == device


def test_streams_and_waits(device, module):
    a = torch.accelerator
    old, stream = a.current_stream(), torch.Stream(device)
    a.set_stream(stream)
    assert a.current_stream() == stream
    a.set_stream(old)
    assert a.current_stream(1).device_index == 1
    for wait in (a.synchronize, module.synchronize):
        wait()
        wait(1)
        wait(torch.device(device, 0))


def test_memory_functions(device):
    a = torch.accelerator
    for index in (None, 0, f"{device}:1", torch.device(device, 1)):
        arguments = () if index is None else (index,)
        assert a.memory_allocated(*arguments) >= 0
        assert a.max_memory_allocated(*arguments) >= a.memory_allocated(*arguments)
        assert a.memory_reserved(*arguments) >= a.memory_allocated(*arguments)
        assert a.max_memory_reserved(*arguments) >= a.memory_reserved(*arguments)
        assert isinstance(a.memory_stats(*arguments), dict)
        assert a.get_memory_info(*arguments)[1] > 0
        a.reset_peak_memory_stats(*arguments)
        a.reset_accumulated_memory_stats(*arguments)
    a.empty_cache()
    a.empty_host_cache()


def test_capability_and_properties(device, module):
    capability = torch.accelerator.get_device_capability()
    assert torch.float32 in capability["supported_dtypes"]
    properties = module.get_device_properties(0)
    assert properties.name == module.get_device_name(0)
    assert properties.total_memory > 0
    assert module.get_device_name(f"{device}:1")


def test_statistics_count_launches(device, module):
    before = module.statistics()["launches"]
    x = torch.ones(100, device=device)
    x = (x + x).exp()
    torch.accelerator.synchronize()
    assert module.statistics()["launches"] >= before + 2


def test_modules_move(device):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    assert all(p.device.type == device for p in model.to(device).parameters())
    assert all(p.device.type == "cpu" for p in model.cpu().parameters())
    assert getattr(model, device)(1)[0].weight.get_device() == 1
    assert model.half()[0].weight.dtype == torch.float16


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_passes_through(device, dtype):
    with torch.autocast(device, dtype=dtype):
        assert (torch.ones(2, device=device) + 1).tolist() == [2, 2]
