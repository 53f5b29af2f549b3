"""Scripts of Lightning's users on the device: accelerators, strategies, precision."""

import json

import pytest

import joined_batch
from joined_batch import close
from sandbox import NAME

pytestmark = pytest.mark.one_mode


def one(**choice):
    choice = {"batch": 8, "imported": True, "devices": 1, **choice}
    script = str(joined_batch.HERE / "lightning_ranks.py")
    [found] = joined_batch.run_python(script, json.dumps(choice), GRAFT_HOST_DEVICES="2")
    return found


def two(**choice):
    return joined_batch.run_ranks("lightning_ranks.py", 2, json.dumps({"batch": 4, **choice}))


@pytest.mark.parametrize("fabric", [False, True])
@pytest.mark.parametrize("accelerator", ["auto", NAME])
def test_one_device(accelerator, fabric):
    found = one(accelerator=accelerator, fabric=fabric)
    assert (found["device"], found["ranks"]) == (f"{NAME}:0", 1)
    assert found["strategy"] == "SingleDeviceStrategy"
    assert found["fallbacks"] == []
    close(found["gradients"], joined_batch.reference()[0])


@pytest.mark.parametrize(
    ("precision", "dtype"), [("16-mixed", "float16"), ("bf16-mixed", "bfloat16")]
)
@pytest.mark.parametrize("fabric", [False, True])
def test_mixed_precision(precision, dtype, fabric):
    found = one(precision=precision, fabric=fabric)
    assert found["device"] == f"{NAME}:0"
    assert found["dtypes"][-1] in (f"torch.{dtype}", "torch.float32" if fabric else "")
    assert "GradScaler is enabled, but CUDA is not available" not in found["errors"]
    close(found["gradients"], joined_batch.reference()[0], 0.05)


@pytest.mark.parametrize(
    "choice",
    [{}, {"strategy": "ddp"}, {"strategy": "ddp", "fabric": True}, {"strategy": "fsdp2"},
     {"package": "pytorch_lightning"}],
    ids=json.dumps,
)  # fmt: skip
def test_two_ranks_have_the_gradients_of_one_process_on_the_joined_batch(choice):
    first, second = two(**choice)
    for rank, found in enumerate((first, second)):
        assert (found["device"], found["ranks"]) == (f"{NAME}:{rank}", 2)
        assert found["strategy"] == (
            "ModelParallelStrategy" if "fsdp2" in choice.values() else "DDPStrategy"
        )
        assert found["fallbacks"] == []
        close(found["gradients"], joined_batch.reference()[0])
    assert first["gradients"] == second["gradients"]


def test_lightning_starts_its_own_ranks():
    """Without a launcher: the script names two devices, and Lightning runs it a second time."""
    script = str(joined_batch.HERE / "lightning_ranks.py")
    choice = json.dumps({"batch": 4, "imported": True, "devices": 2, "accelerator": NAME})
    found = joined_batch.run_python(script, choice, GRAFT_HOST_DEVICES="2")
    assert [rank["device"] for rank in found] == [f"{NAME}:0", f"{NAME}:1"]
    for rank in found:
        close(rank["gradients"], joined_batch.reference()[0])


def test_names_are_the_devices_own_and_undone(python):
    python(
        """
        import torch_graft.integrations.lightning
        from torch_graft import integrations
        from lightning.fabric import Fabric
        from lightning.pytorch import Trainer
        from lightning.pytorch.accelerators import AcceleratorRegistry
        quiet = dict(logger=False, enable_checkpointing=False)
        for given, index in ((1, 0), ([1], 1), ("1,", 1)):
            trainer = Trainer(accelerator="zeta", devices=given, **quiet)
            assert trainer.strategy.root_device == torch.device("zeta", index), given
        assert Trainer(devices=-1, **quiet).num_devices == 2
        assert type(Trainer(devices=1, **quiet).accelerator).__name__ == "ZetaAccelerator"
        assert Trainer(accelerator="cpu", **quiet).strategy.root_device.type == "cpu"
        try:
            Trainer(accelerator="zeta", devices=[2], **quiet)
        except ValueError as error:
            assert "devices=[2]: there are 2 of 'zeta'" in str(error), error
        else:
            raise AssertionError("a device that is not there was taken")
        integrations.disable("lightning")
        assert "zeta" not in AcceleratorRegistry
        assert Trainer(devices=1, **quiet).strategy.root_device.type == Fabric(devices=1).device.type == "cpu"
        """,
        GRAFT_DEVICE_NAME="zeta", GRAFT_HOST_DEVICES="2",
    ).good()  # fmt: skip
