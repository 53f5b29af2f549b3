"""What stock PyTorch keeps from the slot: each row of docs/use/ve-limits.md, with its error."""

from __future__ import annotations

import io
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sandbox import ROOT


def _nested() -> Any:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="ve")


def _compiled_without_index() -> Any:
    torch._dynamo.reset()
    return torch.compile(lambda x: x + torch.ones(3, device="ve"))(torch.ones(3, device="ve"))


def _stream_as_context() -> None:
    stream = torch.Stream(device="ve")
    with stream:
        assert torch.ve.current_stream() == stream, "with torch.Stream is for the accelerator"


def stepped(**options: Any) -> None:
    parameter = torch.nn.Parameter(x())
    parameter.grad = x()
    torch.optim.Adam([parameter], **options).step()


def x() -> torch.Tensor:
    return torch.ones(3, device="ve")


def _shuffled() -> list[int]:
    """As for torch.cuda, a loader that shuffles needs the default device's generator."""
    torch.set_default_device("ve")
    try:
        loader = torch.utils.data.DataLoader(
            range(4),
            shuffle=True,
            generator=torch.ve.Generator(),  # type: ignore[arg-type]
        )
        return [one.item() for one in loader]
    finally:
        torch.set_default_device(None)


def _clipped(**options: bool) -> None:
    parameter = torch.nn.Parameter(x())
    parameter.grad = x() * 9
    torch.nn.utils.clip_grad_norm_([parameter], 1.0, **options)
    torch.testing.assert_close(parameter.grad.norm(), torch.ones((), device="ve"))


def _scripted(place: str) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(torch.nn.Linear(3, 2), torch.ones(3))
        file = io.BytesIO()
        torch.jit.save(traced, file)
        file.seek(0)
        loaded = torch.jit.load(file, map_location=place)
    for name, value in loaded.named_parameters():
        setattr(loaded, name, torch.nn.Parameter(value.to("ve")))
    result: torch.Tensor = loaded(x())
    return result


def _saved(**options: int) -> torch.Tensor:
    from torch.distributed import checkpoint

    with tempfile.TemporaryDirectory() as folder:
        writer = checkpoint.FileSystemWriter(folder, **options)
        checkpoint.save({"x": x()}, storage_writer=writer, no_dist=True)
        found = {"x": torch.zeros(3, device="ve")}
        checkpoint.load(found, checkpoint_id=folder, no_dist=True)
    return found["x"]


def _loaded(place: str) -> torch.Tensor:
    import safetensors.torch

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x"
        safetensors.torch.save_file({"x": x()}, file)
        return safetensors.torch.load_file(file, device=place)["x"]


LIMITS: dict[str, tuple[Callable[[], Any], type[BaseException], str]] = {
    'torch.Generator(device="ve")': (
        lambda: torch.Generator(device="ve"), RuntimeError, "not an accelerator"),
    'torch.autocast("ve")': (lambda: torch.autocast("ve"), RuntimeError, "unsupported scalarType"),
    'torch.UntypedStorage(n, device="ve")': (
        lambda: torch.UntypedStorage(4, device="ve"), RuntimeError, "Storage device not recognized: ve"),
    "storage.resize_()": (
        lambda: x().untyped_storage().resize_(64), RuntimeError, "got unexpected device type ve"),
    "nested tensors of the strided layout": (
        _nested, RuntimeError, "NestedTensorImpl storage must be either"),
    "compressed sparse tensors": (
        lambda: x().diag().to_sparse_csr(), NotImplementedError, "SparseCsrTensorImpl lists"),
    "tensor.new(sizes)": (lambda: x().new(3), RuntimeError, "but got: VE"),
    "new() of a sparse tensor": (
        lambda: torch.eye(3, device="ve").to_sparse().new(), RuntimeError, "but got: SparseVE"),
    "parameter.data = x.ve() of a parameter elsewhere": (
        lambda: setattr(torch.nn.Parameter(torch.ones(3)), "data", x()), RuntimeError,
        "incompatible tensor type"),
    "optimizers with fused=True": (
        lambda: stepped(fused=True), RuntimeError, "requires all the params to be floating point"),
    "optimizers with capturable=True": (
        lambda: stepped(capturable=True), AssertionError, "must be on supported devices"),
    "clip_grad_norm_(foreach=True)": (
        lambda: _clipped(foreach=True), RuntimeError, "can't use the foreach API on ve tensors"),
    'torch.jit.load(map_location="ve")': (
        lambda: _scripted("ve"), RuntimeError, "supported devices include CPU, CUDA, HPU"),
    "torch.distributed.checkpoint.save while graft also has devices": (
        _saved, BaseException, "Tensor must be on CPU"),
    'safetensors\' load_file(file, device="ve")': (
        lambda: _loaded("ve"), Exception, "device ve is invalid"),
    "DLPack": (lambda: torch.utils.dlpack.to_dlpack(x()), BufferError, "Cannot pack tensors on ve:0"),
    "torch.accelerator": (
        lambda: torch.accelerator.set_device_index("ve:0"), ValueError,
        "ve doesn't match the current accelerator"),
    "tensor.type()": (lambda: x().type(), RuntimeError, "Unimplemented backend VE"),
    'with torch.Stream(device="ve")': (_stream_as_context, AssertionError, "for the accelerator"),
    'device="ve" inside a compiled function': (
        _compiled_without_index, Exception, "ve:0 and ve"),
}  # fmt: skip
# Without devices of the accelerator's slot these have no limit.
ONLY_BESIDE_GRAFT = ["torch.distributed.checkpoint.save while graft also has devices"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIMITS)
def test_the_error_of_each_limit(name: str) -> None:
    use, error, text = LIMITS[name]
    if name in ONLY_BESIDE_GRAFT and not torch.graft.device_count():
        use()
        return
    with pytest.raises(error, match=re.escape(text)):
        use()
    assert (x() + 1).tolist() == [2, 2, 2]


def test_the_limits_beside_graft_are_limits() -> None:
    assert set(ONLY_BESIDE_GRAFT) <= set(LIMITS)


def test_the_ways_round() -> None:
    assert x().new_empty(3).device == x().new_tensor([1.0]).device == x().device
    _clipped()
    assert _scripted("cpu").device == x().device
    assert _saved(per_thread_copy_ahead=0).tolist() == [1, 1, 1]
    assert _loaded("cpu").ve().tolist() == [1, 1, 1]
    assert sorted(_shuffled()) == [0, 1, 2, 3]


def test_a_moved_module_has_new_parameters_unless_they_are_swapped() -> None:
    def kept() -> bool:
        module = torch.nn.Linear(2, 2)
        before = module.weight
        return module.to("ve").weight is before

    assert not kept()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        assert kept()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


@pytest.mark.every_run
def test_the_table_has_each_limit() -> None:
    table = (ROOT / "docs/use/ve-limits.md").read_text()
    rows = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    named = {row.replace("`", "") for row in rows[1:] if not row.startswith("-")}
    assert named == {name.replace("`", "") for name in LIMITS}
