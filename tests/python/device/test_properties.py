"""Properties of devices, and the names under which a device is found or refused."""

import pytest
import torch

pytestmark = pytest.mark.both_modes


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
