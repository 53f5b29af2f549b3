# python/torch_graft/compiler/constants.py: tensors that belong to a graph, in the text form.
"""Small ones are written out, the rest is handed over beside the text."""

from __future__ import annotations

import torch

from torch_graft import private_names as inside
from torch_graft.compiler.literals import float_text, type_text
from torch_graft.compiler.sizes import Sizes

_WRITTEN = 256  # elements


class Constants:
    """The constants of one graph. externals: by name what the text does not hold."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.lines: list[str] = []
        self.externals: dict[str, torch.Tensor] = {}

    def add(self, name: str, value: torch.Tensor) -> None:
        head = f"constant %{name}: {type_text(value, self.sizes)}"
        elements = self._elements(value)
        if elements is None:
            self.externals[name] = value
            self.lines.append(f'{head} external "{name}"')
        else:
            self.lines.append(f"{head} = [{', '.join(elements)}]")

    def _elements(self, value: torch.Tensor) -> list[str] | None:
        fake = isinstance(value, inside.FakeTensor)
        if fake or value.device.type == "meta" or value.is_complex() or value.numel() > _WRITTEN:
            return None
        with torch.no_grad(), inside.unset_fake_temporarily():
            flat = value.detach().cpu().reshape(-1)
            numbers = (flat.double() if value.is_floating_point() else flat).tolist()
        if value.dtype == torch.bool:
            return ["true" if one else "false" for one in numbers]
        return [float_text(one) if isinstance(one, float) else str(one) for one in numbers]
