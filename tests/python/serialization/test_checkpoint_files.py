"""Checkpoints on disk: where they load to, foreign, broken and hostile ones; docs/use/serialization.md."""

import io
import os
import pickle
import zipfile

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close


def written(thing, **options):
    buffer = io.BytesIO()
    torch.save(thing, buffer, **options)
    return buffer.getvalue()


def read(data, map_location=None, **options):
    return torch.load(io.BytesIO(data), map_location=map_location, weights_only=True, **options)


def from_device(name, thing):
    """A checkpoint as a process with the device of that name writes it."""
    source = zipfile.ZipFile(io.BytesIO(written(thing)))
    target, location = io.BytesIO(), name.encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for entry in source.namelist():
            data = source.read(entry)
            if entry.endswith("data.pkl"):
                data = data.replace(
                    b"X\3\0\0\0cpu", b"X" + len(location).to_bytes(4, "little") + location
                )
            archive.writestr(entry, data)
    return target.getvalue()


FOREIGN = "CUDA:0".lower()  # where a foreign checkpoint lay; no test runs there
FORMS = {
    "none": (None, None), "device type": ("{0}", "{0}:0"), "name": ("{0}:1", "{0}:1"),
    "cpu": ("cpu", "cpu"), "meta": ("meta", "meta"),
    "torch.device": (lambda d: torch.device(d, 1), "{0}:1"),
    "dict": (lambda d: {f"{d}:1": f"{d}:0", "cpu": f"{d}:1"}, {"{0}:1": "{0}:0", "cpu": "{0}:1"}),
    "dict of others": (lambda d: {f"{d}:0": "cpu", FOREIGN: "cpu"}, None),
    "function": (lambda d: lambda storage, where: getattr(storage, d)(0), "{0}:0"),
    "function to the CPU": (lambda d: lambda storage, where: storage, "cpu"),
    "function that leaves it": (lambda d: lambda storage, where: None, None),
}  # fmt: skip


@pytest.mark.parametrize("legacy", [False, True], ids=["", "legacy file"])
@pytest.mark.parametrize("form", FORMS)
def test_map_location(device, second, tmp_path, form, legacy):
    wanted, target = FORMS[form]
    where = wanted(device) if callable(wanted) else wanted and wanted.format(device)
    for source in ("cpu", second):
        x = torch.arange(6.0, device=source)
        data = written({"x": x, "part": x[2:4]}, _use_new_zipfile_serialization=not legacy)
        (tmp_path / "file.pt").write_bytes(data)
        expected = target
        if isinstance(target, dict):
            expected = {k.format(device): v for k, v in target.items()}[source]
        expected = source if expected is None else expected.format(device)
        loads = [read(data, where)]
        if not legacy:
            path = tmp_path / "file.pt"
            loads.append(torch.load(path, map_location=where, weights_only=True, mmap=True))
        for back in loads:
            assert str(back["x"].device) == expected
            if expected == "meta":
                continue
            assert_close([t.cpu() for t in back.values()], [x.cpu(), x.cpu()[2:4]])
            back["x"].zero_()
            assert back["part"].tolist() == [0, 0], "they share their memory, as before"
        assert (tmp_path / "file.pt").read_bytes() == data


def test_default_devices(device, second, module):
    """The current device stands for a bare name; it moves nothing that has its own."""
    data = written(torch.ones(2, device=f"{device}:0"))
    with torch.device(second):
        assert str(read(data).device) == f"{device}:0"
    with module.device(1):
        assert str(read(data, device).device) == second
        assert str(read(data).device) == f"{device}:0"


def test_mapped_files_want_a_path(device):
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        read(written(torch.ones(2, device=device)), mmap=True)


def test_a_device_that_is_not_there(device):
    text = (f"Attempting to deserialize object on {device.upper()} device 7 but "
            rf"torch.{device}.device_count\(\) is 2")  # fmt: skip
    for data, where in (
        (from_device(f"{device}:7", torch.ones(2)), None),
        (written(torch.ones(2)), f"{device}:7"),
        (written(torch.ones(2, device=device)), {f"{device}:0": f"{device}:7"}),
    ):
        with pytest.raises(RuntimeError, match=text):
            read(data, where)


@pytest.mark.parametrize(
    ("origin", "text"),
    [(FOREIGN, r"on a CUDA device but torch.cuda.is_available\(\) is False"),
     ("xpu:0", r"on a XPU device but torch.xpu.is_available\(\) is False"),
     ("hpu:0", "The HPU device module is not registered"),
     ("npu:0", r"don't know how to restore data location .* \(tagged with npu:0\)")],
)  # fmt: skip
def test_checkpoints_of_other_devices(device, second, tmp_path, origin, text):
    """On a machine without that device the file loads to Graft as soon as it is told to."""
    data = from_device(origin, {"weight": torch.arange(6.0), "n": 3})
    with pytest.raises(RuntimeError, match=text):
        read(data)
    (tmp_path / "file.pt").write_bytes(data)
    for where in (device, second, {origin: second}, lambda storage, _: getattr(storage, device)(1)):
        for mapped in (False, True):
            file = tmp_path / "file.pt"
            back = torch.load(file, map_location=where, weights_only=True, mmap=mapped)
            assert back["weight"].device.type == device
            assert back["weight"].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_machine_without_graft(device, python, tmp_path):
    file = tmp_path / "file.pt"
    torch.save(torch.arange(3.0, device=device), file)
    code = """
        found = []
        for options in ({}, {"map_location": "cpu"}):
            try:
                found.append(torch.load(os.environ["FILE"], **options).tolist())
            except RuntimeError as error:
                found.append(str(error))
        print(json.dumps(found))
    """
    for environment, text in (
        ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, f"(tagged with {device}:0)"),
        (
            {"GRAFT_DEVICES": None, "GRAFT_HOST_DEVICES": "0"},
            f"torch.{device}.is_available() is False",
        ),
    ):
        error, numbers = python(code, FILE=str(file), **environment).value()
        assert text in error
        assert numbers == [0, 1, 2]


@pytest.fixture
def trained(device):
    """A model with its optimizer, and a function that tells whether anything of them changed."""
    model = nn.Linear(16, 16).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    model(torch.ones(2, 16, device=device)).square().sum().backward()
    optimizer.step()

    def state():
        moments = [t for each in optimizer.state.values() for t in each.values()]
        return [t.detach().clone() for t in (*model.parameters(), *moments)]

    before = state()

    def unchanged():
        return all(a.equal(b) for a, b in zip(before, state(), strict=True))

    return model, optimizer, unchanged


def resume(model, optimizer, data):
    """What a script does: the whole file first, then the model."""
    state = read(data)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])


BROKEN = (RuntimeError, EOFError, OSError, ValueError, LookupError, pickle.UnpicklingError)


@pytest.mark.parametrize("legacy", [False, True], ids=["", "legacy file"])
def test_a_truncated_file_leaves_the_model_untouched(trained, tmp_path, legacy):
    model, optimizer, unchanged = trained
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    data = written(state, _use_new_zipfile_serialization=not legacy)
    with torch.no_grad():  # so that a load that did something would show
        state["model"] = {k: v + 1 for k, v in state["model"].items()}
    data = written(state, _use_new_zipfile_serialization=not legacy)
    file = tmp_path / "cut.pt"
    for size in (0, 1, 10, 100, len(data) // 3, len(data) // 2, len(data) - 300, len(data) - 1):
        with pytest.raises(BROKEN):
            resume(model, optimizer, data[:size])
        file.write_bytes(data[:size])
        with pytest.raises(BROKEN):
            torch.load(file, mmap=True)
        assert unchanged()
    resume(model, optimizer, data)
    assert not unchanged()


def test_a_corrupt_file_leaves_the_model_untouched(trained):
    model, optimizer, unchanged = trained
    data = written({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    archive = zipfile.ZipFile(io.BytesIO(data))
    (entry,) = [each for each in archive.namelist() if each.endswith("data.pkl")]
    objects = data.index(archive.read(entry))
    for place in (objects + 2, objects + 30, objects + 100, archive.start_dir, len(data) - 22):
        bad = bytearray(data)
        bad[place : place + 8] = b"\xff" * 8
        with pytest.raises(BROKEN):
            resume(model, optimizer, bytes(bad))
        assert unchanged()
    for other in (b"a text, no checkpoint\n" * 100, b"PK\3\4" + bytes(500)):
        with pytest.raises(BROKEN):
            resume(model, optimizer, other)
        assert unchanged()


class Hostile:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("it-ran",)


def test_weights_only_runs_nothing(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = written({"weight": torch.ones(2, device=device), "more": Hostile()})
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        read(data)
    assert not (tmp_path / "it-ran").exists()
    torch.load(io.BytesIO(data), weights_only=False)
    assert (tmp_path / "it-ran").exists()


def test_flipped_numbers_are_not_noticed(device):
    """PyTorch's reader checks no sums, on any device: keep one beside the file where it matters."""
    data = bytearray(written(torch.zeros(1000, dtype=torch.uint8, device=device)))
    data[data.index(bytes(900)) + 500] = 9
    assert read(bytes(data)).unique().tolist() == [0, 9]


def test_a_checkpoint_of_shapes_alone(device, second, tmp_path):
    path = tmp_path / "shapes.pt"
    with torch.serialization.skip_data():
        torch.save(
            {"here": torch.ones(30, 20, device=device), "there": torch.ones(5, device=second)}, path
        )
    loaded = torch.load(path, weights_only=True)
    assert (loaded["here"].shape, loaded["there"].shape) == ((30, 20), (5,))
    with FakeTensorMode():
        fake = torch.load(path, weights_only=True)
    assert fake["here"].device == torch.device(device, 0)
    assert fake["there"].device == torch.device(second)
