"""safetensors reads onto the device by its name."""

import pytest

pytestmark = pytest.mark.one_mode

FILES = """
import tempfile
import torch_graft.integrations.safetensors
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

path = tempfile.mkdtemp() + "/weights"
given = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}
save_file(given, path)
for where in (D, D + ":1", torch.device(D, 1), "cpu", 0):
    place = torch.device(D, 0) if where in (D, 0) else torch.device(where)
    for name, tensor in load_file(path, device=where).items():
        assert tensor.device == place and torch.equal(tensor.cpu(), given[name]), (where, tensor)
with safe_open(path, "pt", device=D + ":1") as file:
    assert sorted(file.keys()) == ["a", "b"]
    assert file.get_tensor("a").device == file.get_slice("a")[0:1].device == torch.device(D, 1)
model, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2).to(D)
save_model(model, path)
load_model(other, path, device=D)
assert other.weight.device.type == D and torch.equal(other.weight.cpu(), model.weight)
save_model(other, path)
"""


def test_tensors_arrive_on_the_named_device(python):
    python(FILES).good()
