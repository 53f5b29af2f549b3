# python/torch_graft/deployment/loading.py: load(), a module of a deployed model's file.
"""See docs/use/deploy/README.md."""

from __future__ import annotations

import os
from typing import Any

import torch

from torch_graft import _C
from torch_graft.attaching import attached_name
from torch_graft.deployment.result_form import result_of


class Deployed(torch.nn.Module):
    """A deployed model. Its parameters and buffers have the names that they had; what calls write is
    a buffer; arguments of a call are the
    tensors that the file names, by position or by name, on the model's device."""

    def __init__(
        self, manifest: _C.Manifest, tensors: dict[str, torch.Tensor], device: torch.device
    ) -> None:
        super().__init__()
        self._manifest = manifest
        moved = {name: tensor.to(device) for name, tensor in tensors.items()}
        constants = {name: moved[tensor] for name, tensor in manifest.constants.items()}
        before, main, taken, _ = _C.compile_graph(
            manifest.graph, False, device.index or 0, True, constants
        )
        self._state = set(manifest.state)
        self._run: Any = main.run
        if before is not None:
            self._run = _C.PreparedGraph(before.run, main.run, taken)
        # By input of the graph: the name of an argument, or where its weight is.
        self._sources = [self._place(name, moved[name]) if weight else name
                         for name, weight in manifest.inputs]  # fmt: skip

    def _place(self, path: str, tensor: torch.Tensor) -> tuple[torch.nn.Module, str]:
        """Makes the tensor a parameter of the module at its path, or a buffer."""
        *folders, name = path.split(".")
        module: torch.nn.Module = self
        for folder in folders:
            if folder not in dict(module.named_children()):
                module.add_module(folder, torch.nn.Module())
            module = module.get_submodule(folder)
        known = dict(module.named_parameters(recurse=False)) | dict(
            module.named_buffers(recurse=False)
        )
        if name in known:
            return module, name
        if tensor.is_floating_point() and path not in self._state:
            module.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=False))
        else:
            module.register_buffer(name, tensor)
        return module, name

    def forward(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> Any:
        names = self._manifest.arguments
        given = dict(zip(names, args, strict=False)) | kwargs
        if set(given) != set(names) or len(args) + len(kwargs) != len(names):
            raise TypeError(
                f"the model takes {', '.join(names)}; got {len(args)} arguments by position and "
                f"{', '.join(kwargs) or 'none'} by name"
            )
        inputs: list[Any] = [
            given[source].contiguous() if isinstance(source, str) else getattr(source[0], source[1])
            for source in self._sources
        ]
        inputs += [given[names[place]].shape[dim] for place, dim in self._manifest.integers]
        with torch.no_grad():
            return result_of(self._manifest.result, self._run(inputs))


def load(path: str | os.PathLike[str], device: str | torch.device | None = None) -> Deployed:
    """The model of a file that deploy() wrote, compiled for a Graft device. Raises RuntimeError for
    a damaged file, and for one of another major version of the format."""
    manifest, tensors = _C.read_model(os.fspath(path))
    chosen = torch.device(attached_name() or "graft" if device is None else device)
    return Deployed(manifest, tensors, chosen).eval()
