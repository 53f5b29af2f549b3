"""safetensors and torch.distributed.checkpoint, in one process; docs/use/serialization.md."""

import pytest
import safetensors
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.testing import assert_close


@pytest.fixture
def weights(device, second):
    return {"a": torch.arange(6.0, device=second).reshape(2, 3),
            "b": torch.tensor([1.5, -2.0], dtype=torch.bfloat16, device=device),
            "c": torch.tensor([True, False], device=device)}  # fmt: skip


def on_the_cpu(tensors):
    return {name: tensor.cpu() for name, tensor in tensors.items()}


def test_safetensors(device, weights, tmp_path):
    """The library knows no device by this name: an index goes to the accelerator, as with CUDA."""
    file = tmp_path / "weights.safetensors"
    safetensors.torch.save_file(weights, file)
    for index in (0, 1):
        back = safetensors.torch.load_file(file, device=index)
        assert {str(t.device) for t in back.values()} == {f"{device}:{index}"}
        assert_close(on_the_cpu(back), on_the_cpu(weights))
        with safetensors.safe_open(file, "pt", device=index) as opened:
            assert str(opened.get_tensor("a").device) == f"{device}:{index}"
            assert opened.get_slice("a")[1:, :2].tolist() == [[3, 4]]
    for name in (device, f"{device}:1"):
        with pytest.raises(safetensors.SafetensorError, match=f"device {name} is invalid"):
            safetensors.torch.load_file(file, device=name)
    assert_close(safetensors.torch.load(safetensors.torch.save(weights)), on_the_cpu(weights))


def test_safetensors_of_a_model(device, tmp_path):
    def tied():
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to(device)
        model[1].weight = model[0].weight
        return model

    file = tmp_path / "model.safetensors"
    source, model = tied(), tied()
    with pytest.raises(RuntimeError, match="Some tensors share memory"):
        safetensors.torch.save_file(source.state_dict(), file)
    safetensors.torch.save_model(source, file)
    missing, unexpected = safetensors.torch.load_model(model, file)
    assert not missing
    assert not unexpected
    assert_close(dict(model.state_dict()), dict(source.state_dict()))
    assert model[0].weight.device.type == device


def test_a_broken_safetensors_file(weights, tmp_path):
    file = tmp_path / "weights.safetensors"
    data = safetensors.torch.save(weights)
    for bad in (data[:-1], data[:40], b"", b"\xff" * 8 + data[8:]):
        file.write_bytes(bad)
        with pytest.raises(safetensors.SafetensorError):
            safetensors.torch.load_file(file, device=0)


def trained(where, seed=0, steps=1):
    torch.manual_seed(seed)
    model = nn.Linear(3, 2).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    for _ in range(steps):
        model(torch.ones(1, 3, device=where)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def state_of(model, optimizer, n=0):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "n": n}


def values(model, optimizer):
    moments = [t for each in optimizer.state.values() for t in each.values()]
    return [t.detach().cpu() for t in (*model.parameters(), *moments)]


@pytest.fixture
def folder(device, tmp_path):
    """A distributed checkpoint that one process wrote."""
    dcp.save(state_of(*trained(device), n=3), checkpoint_id=tmp_path / "saved", no_dist=True)
    return tmp_path / "saved"


def test_distributed_checkpoint(device, second, folder):
    expected = values(*trained(device))
    for where in (device, second, "cpu"):
        model, optimizer = trained(where, seed=5)
        state = state_of(model, optimizer)
        dcp.load(state, checkpoint_id=folder, no_dist=True)
        assert state["n"] == 3
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        assert_close(values(model, optimizer), expected)
        assert optimizer.state[model.weight]["exp_avg"].device == model.weight.device


def test_state_dict_functions(device):
    source, fresh = trained(device), trained(device, seed=5)
    model_state, optimizer_state = get_state_dict(*source)
    set_state_dict(*fresh, model_state_dict=model_state, optim_state_dict=optimizer_state)
    assert_close(values(*fresh), values(*source))
    options = StateDictOptions(cpu_offload=True, full_state_dict=True)
    offloaded = get_model_state_dict(source[0], options=options)
    assert {t.device.type for t in offloaded.values()} == {"cpu"}
    assert_close(list(offloaded.values()), values(*source)[:2])


@pytest.mark.parametrize("staged", [False, True], ids=["", "staged by a thread"])
def test_saving_goes_on_beside_the_training(device, tmp_path, staged):
    """What is saved is the state of the call, whatever the training does to it afterwards."""
    model, _ = trained(device)
    before = {name: t.detach().cpu().clone() for name, t in model.state_dict().items()}
    state, options = {"model": model.state_dict()}, {"checkpoint_id": tmp_path, "no_dist": True}
    if staged:
        staging = StagingOptions(
            use_pinned_memory=False, use_shared_memory=False, use_async_staging=True,
            use_non_blocking_copy=False,
        )  # fmt: skip
        stager = DefaultStager(staging)
        response = dcp.async_save(state, async_stager=stager, **options)
        response.staging_completion.result()
        upload = response.upload_completion
    else:
        upload = dcp.async_save(state, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0)
    upload.result()
    if staged:
        stager.close()
    back = {"model": {name: torch.ones_like(t) for name, t in model.state_dict().items()}}
    dcp.load(back, checkpoint_id=tmp_path, no_dist=True)
    assert_close(on_the_cpu(back["model"]), before)


def test_conversion_to_and_from_one_file(device, folder, tmp_path):
    file, again = tmp_path / "one.pt", tmp_path / "again"
    dcp_to_torch_save(folder, file)
    state = torch.load(file, map_location=device)
    assert_close(list(on_the_cpu(state["model"]).values()), values(*trained(device))[:2])
    torch_save_to_dcp(file, again)
    model, optimizer = trained(device, seed=5)
    back = state_of(model, optimizer)
    dcp.load(back, checkpoint_id=again, no_dist=True)
    assert_close(values(model, optimizer)[:2], values(*trained(device))[:2])


@pytest.mark.parametrize("fault", ["truncated", "no metadata", "bad metadata", "nothing"])
def test_a_broken_distributed_checkpoint(device, folder, fault):
    """dcp.load writes in place, so it gets copies: an error then leaves the model as it was."""
    (data,) = folder.glob("*.distcp")
    if fault == "truncated":
        data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    elif fault == "no metadata":
        (folder / ".metadata").unlink()
    elif fault == "bad metadata":
        (folder / ".metadata").write_bytes(b"abc")
    else:
        data.unlink()
    model, optimizer = trained(device, seed=5)
    before = values(model, optimizer)
    copies = {name: torch.empty_like(t) for name, t in model.state_dict().items()}
    with pytest.raises(dcp.CheckpointException):
        dcp.load({"model": copies}, checkpoint_id=folder, no_dist=True)
    assert_close(values(model, optimizer), before, rtol=0, atol=0)
