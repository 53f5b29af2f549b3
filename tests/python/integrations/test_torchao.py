"""torchao's weights of 8 and 4 bits are quantized and multiplied on the device."""

import pytest

pytestmark = pytest.mark.one_mode

INT8 = """
import torch_graft.integrations.torchao
from torch_graft import integrations
from torch.utils._python_dispatch import TorchDispatchMode
from torchao.quantization import Int8WeightOnlyConfig, quantize_

class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))

def quantized(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 32, bias=False))
    model = model.to(device).eval()
    quantize_(model, Int8WeightOnlyConfig())
    return model

x = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(1))
with torch.no_grad(), torch.get_device_module(D).fallback.forbid():
    model, expected = quantized(D), quantized("cpu")(x)
    with Calls() as calls:
        found = model(x.to(D))
    assert calls.names.count("_weight_int8pack_mm") == 2 and "mm" not in calls.names, calls.names
    torch.testing.assert_close(found.cpu(), expected)
    torch.testing.assert_close(torch.compile(model, fullgraph=True)(x.to(D)).cpu(), expected)
leaf = x.to(D).requires_grad_()
model(leaf).sum().backward()
assert leaf.grad.abs().sum().item() > 0
integrations.disable("torchao")
with torch.no_grad(), Calls() as calls:
    torch.testing.assert_close(model(x.to(D)).cpu(), expected)
assert "mm" in calls.names and "_weight_int8pack_mm" not in calls.names, calls.names
"""

INT4 = """
import torch_graft.integrations.torchao
from torch_graft import integrations
from torchao.quantization import Int4WeightOnlyConfig, quantize_

def dequantized(weight):
    \"\"\"By the product with the unit matrix, whose sums have one term.\"\"\"
    unit = torch.eye(1024, dtype=torch.bfloat16, device=D)
    return torch._weight_int4pack_mm(unit, weight.qdata, weight.block_size[-1], weight.scale_and_zero).t()

for group in (32, 64, 128, 256):
    for packing in ("plain", "tile_packed_to_4d"):
        torch.manual_seed(0)
        model = torch.nn.Linear(1024, 48, bias=True).to(D, torch.bfloat16).eval()
        given = model.weight.detach().float().cpu()
        with torch.no_grad(), torch.get_device_module(D).fallback.forbid():
            quantize_(model, Int4WeightOnlyConfig(group_size=group, int4_packing_format=packing, set_inductor_config=False))
            assert type(model.weight).__name__ == "Int4TilePackedTo4dTensor", type(model.weight)
            weight = dequantized(model.weight)[:48]
            assert (weight.float().cpu() - given).abs().max() < 1.1 * (2 / 32) / 15
            x = torch.randn(3, 1024, device=D, dtype=torch.bfloat16)
            expected = x.double() @ weight.double().t() + model.bias.double()
            torch.testing.assert_close(model(x).double(), expected, rtol=2e-2, atol=2e-2)
            compiled = torch.compile(model, fullgraph=True)(x)
            torch.testing.assert_close(compiled.double(), expected, rtol=2e-2, atol=2e-2)
integrations.disable("torchao")
try:
    quantize_(torch.nn.Linear(1024, 8).to(D, torch.bfloat16), Int4WeightOnlyConfig())
except ImportError:
    pass
else:
    raise AssertionError("the plain format is packed by a library for CUDA")
"""


def test_weights_of_8_bits_are_read_as_they_lie(python):
    python(INT8).good()


def test_weights_of_4_bits_are_packed_on_the_device(python):
    python(INT4).good()
