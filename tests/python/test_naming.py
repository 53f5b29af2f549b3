"""A vendor's own device name."""

import pytest


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


@pytest.mark.parametrize("name", ["cuda", "9lives", "two words", "cpu"])  # device-specific
def test_name_that_cannot_be(python, name):
    ran = python("print(torch.ones(2).tolist())", GRAFT_DEVICE_NAME=name).good()
    assert "[1.0, 1.0]" in ran.out
    assert "GRAFT_DEVICE_NAME" in ran.err
