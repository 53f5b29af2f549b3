"""A vendor's own device name."""

import os
import subprocess
import sys

import pytest
import torch


def test_another_name(python):
    python(
        """
        import copy, io, pickle
        assert torch.accelerator.current_accelerator().type == "npu"
        x = torch.ones(3, device="npu")
        assert x.is_npu and str(x.device) == "npu:0" and "device='npu:0'" in repr(x)
        assert torch.ones(2).npu().device == x.device
        model = torch.nn.Linear(3, 2).npu()
        model(x).sum().backward()
        assert model.weight.grad.is_npu
        assert torch.npu.is_available() and torch.npu.current_device() == 0
        assert torch.npu.fallback.total() >= 0
        file = io.BytesIO()
        torch.save(x, file)
        file.seek(0)
        assert torch.load(file).is_npu and pickle.loads(pickle.dumps(x)).is_npu
        with torch.npu.device(1), torch.Stream("npu:1"):
            assert torch.ones(1, device="npu").get_device() == 1
        torch.npu.manual_seed(1)
        assert torch.Generator("npu").device.type == "npu"
        try:
            torch.ones(1, device="npu:9")
        except Exception as error:
            assert "npu" in str(error)
        assert not hasattr(torch, "graft")
        """,
        GRAFT_DEVICE_NAME="npu",
    ).good()


TAKEN = {
    "cuda": "PyTorch has a device type 'cuda' already",  # device-specific
    "cpu": "PyTorch has a device type 'cpu' already",
    "meta": "PyTorch has a device type 'meta' already",
    "xpu": "PyTorch has a device type 'xpu' already",  # device-specific
    "privateuseone": "PyTorch uses this name for a device type without a name",
    "nn": "PyTorch already has torch.nn",
    "add": "PyTorch already has torch.add",
    "backward": "PyTorch already has torch.Tensor.backward",
    "shared": "PyTorch already has torch.Tensor.is_shared",
    "parameters": "PyTorch already has torch.nn.Module.parameters",
    "lambda": "is a keyword of Python",
    "9lives": "a letter first",
    "NPU": "lower-case letters, digits and underscores only",
    "two words": "lower-case letters, digits and underscores only",
    "npu:1": "lower-case letters, digits and underscores only",
    "_npu": "a letter first",
}


@pytest.mark.parametrize("name", TAKEN)
def test_name_that_cannot_be(python, name):
    ran = python(
        "print(torch.ones(2, device=torch.accelerator.current_accelerator()).device, D)",
        GRAFT_DEVICE_NAME=name, DEVICE="graft",
    ).good()  # fmt: skip
    assert "graft:0" in ran.out
    told = [line for line in ran.err.splitlines() if "GRAFT_DEVICE_NAME asks for" in line]
    assert len(told) == 1, ran.err
    assert f"the device name '{name}', which is not possible: " in told[0]
    assert TAKEN[name] in told[0]
    assert "The device is called 'graft' instead" in told[0]


@pytest.mark.parametrize("name", ["npu2", "n3pu"])
def test_digits_are_a_matter_of_the_installed_pytorch(python, name):
    """Some versions parse them, others rename the type and never parse its name again."""
    asked = f"""
    torch.utils.rename_privateuse1_backend({name!r})
    try:
        text = str(torch.device("{name}:1"))
    except RuntimeError as error:
        text = str(error)
    print(json.dumps(text))
    """
    parsed = python(asked, TORCH_DEVICE_BACKEND_AUTOLOAD="0").value()
    ran = python(
        "d = torch.accelerator.current_accelerator(); print(json.dumps(str(torch.ones(2, device=d).device)))",
        GRAFT_DEVICE_NAME=name,
    )
    if parsed == f"{name}:1":
        assert ran.value() == f"{name}:0"
        assert "is not possible" not in ran.err
        return
    assert parsed == f"Invalid device string: '{name}:1'"
    assert ran.value() == "graft:0"
    said = next(line for line in ran.err.splitlines() if "GRAFT_DEVICE_NAME asks for" in line)
    version = torch.__version__.split("+")[0]
    assert f"PyTorch {version} does not parse digits in the name of a device; torch.device" in said
    assert f"Invalid device string: '{name}:0'" in said


def test_the_doctor_says_that_the_name_is_taken():
    ran = subprocess.run(
        [sys.executable, "-m", "torch_graft", "doctor"], capture_output=True, text=True, timeout=100,
        env=os.environ | {"GRAFT_DEVICE_NAME": "nn"},
    )  # fmt: skip
    assert ran.returncode == 1
    assert (
        "GRAFT_DEVICE_NAME asks for 'nn', which is not possible: PyTorch already has torch.nn"
        in ran.stdout
    )
    assert "The device is called 'graft'" in ran.stdout
