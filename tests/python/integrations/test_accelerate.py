"""Scripts of accelerate's users on the device: ranks, precision, memory."""

import pytest
import torch

import joined_batch
from joined_batch import close
from sandbox import NAME

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("name", [NAME, "zeta"])
def test_two_ranks_have_the_gradients_of_one_process_on_the_joined_batch(name):
    first, second = joined_batch.run_ranks("accelerate_ranks.py", 2, "4", GRAFT_DEVICE_NAME=name)
    gradients, parameters = joined_batch.reference()
    for rank, found in enumerate((first, second)):
        assert found["device"] == f"{name}:{rank}"
        assert (found["ranks"], found["kind"]) == (2, "DistributedType.MULTI_GPU")
        assert found["fallbacks"] == []
        close(found["gradients"], gradients)
        close(found["parameters"], parameters)
    assert first["gradients"] == second["gradients"]


@pytest.mark.parametrize("mixed", ["fp16", "bf16"])
def test_two_ranks_with_mixed_precision(mixed):
    first, second = joined_batch.run_ranks("accelerate_ranks.py", 2, "4", mixed)
    gradients, _ = joined_batch.reference()
    assert first["gradients"] == second["gradients"]
    assert first["dtype"] == {"fp16": "torch.float16", "bf16": "torch.bfloat16"}[mixed]
    assert first["scaler"] is (mixed == "fp16")
    assert first["fallbacks"] == []
    close(first["gradients"], gradients, 0.05)


@pytest.mark.parametrize("mixed", ["no", "bf16", "fp16"])
def test_two_ranks_of_fsdp2(mixed):
    """Each rank holds a part of the parameters; the gradients are those of one process."""
    ranks = joined_batch.run_ranks("accelerate_ranks.py", 2, "4", mixed, "fsdp2")
    gradients, parameters = joined_batch.reference()
    tolerance = 1e-5 if mixed == "no" else 0.05
    for rank, found in enumerate(ranks):
        assert found["device"] == f"{NAME}:{rank}"
        assert (found["ranks"], found["kind"]) == (2, "DistributedType.FSDP")
        assert found["fallbacks"] == []
        assert found["scaler"] is (mixed == "fp16")
        close(found["gradients"], gradients, tolerance)
        close(found["parameters"], parameters, tolerance)
        close(found["norm"], [torch.tensor(gradients[-1]).norm().item()], tolerance)
    assert sum(found["held"] for found in ranks) == len(parameters)
    assert max(found["held"] for found in ranks) < 0.6 * len(parameters)
    assert ranks[0]["kept"] == ranks[0]["parameters"]  # the state dict is whole on the first rank


ONE = """
import torch_graft.integrations.accelerate
from torch_graft import integrations
import accelerate
from accelerate import Accelerator, PartialState, infer_auto_device_map
from accelerate.state import AcceleratorState

def fresh(*given, **named):
    AcceleratorState._reset_state(True)
    return Accelerator(*given, **named)

assert fresh().device == torch.device(D, 0)
assert fresh(cpu=True).device.type == "cpu"
for again in (fresh(mixed_precision="fp16"), Accelerator(mixed_precision="fp16"), Accelerator()):
    assert again.mixed_precision == "fp16" and again.native_amp and again.scaler.is_enabled(), again
    assert again.scaler._device == D, again.scaler._device
try:
    Accelerator(mixed_precision="bf16")
except ValueError as error:
    assert "already been initialized" in str(error), error
else:
    raise AssertionError("a second precision was taken")
assert fresh(mixed_precision="bf16").native_amp
os.environ["ACCELERATE_MIXED_PRECISION"] = "fp16"
assert fresh().mixed_precision == "fp16"
del os.environ["ACCELERATE_MIXED_PRECISION"]
os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
assert fresh().device.type == "cpu"
del os.environ["ACCELERATE_TORCH_DEVICE"]

net = torch.nn.Sequential(*(torch.nn.Linear(100, 100) for _ in range(4)))
free = accelerate.utils.get_max_memory()
assert set(free) == {0, 1, "cpu"} and min(free.values()) > 2**20
assert infer_auto_device_map(net) == {"": 0}
places = infer_auto_device_map(net, max_memory={0: "90KB", 1: "90KB", "cpu": "1GB"})
assert set(places.values()) == {0, 1, "cpu"}, places
moved = accelerate.dispatch_model(net, {"0": 0, "1": 1, "2": 0, "3": 1})
assert [moved[i].weight.device.index for i in range(4)] == [0, 1, 0, 1]
assert moved(torch.ones(1, 100)).device.type == "cpu"  # where the input was

integrations.disable("accelerate")
assert fresh().device.type == "cpu" and set(accelerate.utils.get_max_memory()) == {"cpu"}
try:
    os.environ["ACCELERATE_TORCH_DEVICE"] = D
    fresh(mixed_precision="fp16")
except ValueError as error:
    assert "fp16 mixed precision requires" in str(error)
else:
    raise AssertionError("disabling left fp16")
"""


def test_one_process(python):
    python(ONE).good()


def test_a_rank_without_a_device_is_refused(python):
    ran = python(
        """
        import torch_graft.integrations.accelerate
        from accelerate import Accelerator
        Accelerator()
        """,
        LOCAL_RANK="2", RANK="2", WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT="1",
    )  # fmt: skip
    assert ran.code == 1
    assert f"rank 2 of this machine has no device: '{NAME}' has 2" in ran.err
