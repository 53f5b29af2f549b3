# conformance/torch_conformance/fuzz/values.py: draws argument values, most of them sound, some hostile.
"""A value is a Python expression over the names of environment(): what a finding prints is what ran.

Tensors are made on the CPU from a seed and moved to `d`, the device of the call, so that both sides
of a comparison begin with the same bits.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import torch

from torch_conformance.fuzz import entries

DTYPES = {
    "float32": 40, "float64": 8, "float16": 6, "bfloat16": 6, "int64": 10, "int32": 4, "uint8": 3,
    "int8": 3, "int16": 2, "bool": 6, "complex64": 6, "complex128": 2, "complex32": 1,
    "float8_e4m3fn": 1, "uint16": 1,
}  # fmt: skip
SHAPES = [(), (0,), (1,), (2,), (3,), (5,), (17,), (1, 1), (2, 3), (3, 3), (1, 4), (0, 3), (2, 0),
          (2, 3, 4), (3, 1, 2), (1, 1, 1), (0, 2, 3), (2, 3, 4, 5), (1, 2, 6, 6), (2, 1, 0, 3),
          (1, 2, 4, 4, 4), (1, 1, 2, 1, 2, 3), (300,), (40, 33)]  # fmt: skip
SMALL = [0, 1, 1, 2, 2, 3, -1, -1, -2, 4, 5]
HUGE = [7, -3, 100, 1000, -100, 65, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63)]
REALS = ["0.0", "1.0", "0.5", "-1.0", "2.5", "1e-5", "0.1", "1e-3"]
WILD_REALS = ["nan", "inf", "-inf", "1e308", "-0.0", "1e-320", "-7.5", "3e9"]
WORDS = ["'none'", "'mean'", "'sum'", "'prod'", "'amax'", "'amin'", "'floor'", "'trunc'", "'tanh'",
         "'linear'", "'nearest'", "'ij'", "'mean'", "'reduced'", "'complete'"]  # fmt: skip
ODD_WORDS = ["''", "'x'", "'\\u00e9\\x00'", "'MEAN'", "'y' * 5000"]
OF_INDICES = ("index", "indices", "target", "offset", "offsets", "bins", "end")
OF_CHANNELS = ("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "mean",
               "var", "input_g")  # fmt: skip


def made(
    dtype: str, shape: tuple[int, ...], seed: int = 0, low: float = -4, high: float = 4,
    *, device: torch.device,
) -> torch.Tensor:  # fmt: skip
    """A tensor of reproducible values in [low, high) on the device."""
    source = torch.Generator().manual_seed(seed)
    kind: torch.dtype = getattr(torch, dtype)
    wide = torch.rand(shape, generator=source, dtype=torch.float64) * (high - low) + low
    if kind == torch.bool:
        wide = wide > (high + low) / 2
    elif kind.is_complex:
        wide = torch.complex(wide, torch.rand(shape, generator=source, dtype=torch.float64) - 0.5)
    elif not kind.is_floating_point:
        wide = wide.floor().clamp(max=high - 1 if high > low else high)
        if low < 0 and not kind.is_signed:
            wide = wide.abs()
    return wide.to(kind).to(device)


def wild(
    dtype: str, shape: tuple[int, ...], seed: int = 0, *, device: torch.device
) -> torch.Tensor:
    """As made, with NaN, infinities, negative zero and large numbers among the elements."""
    values = made(dtype, shape, seed, device=torch.device("cpu"))
    odd = [float("nan"), float("inf"), -float("inf"), -0.0, 6e4, -6e4, 1e-30]
    flat = values.reshape(-1)
    if values.dtype.is_floating_point or values.dtype.is_complex:
        for place in range(seed % 3, flat.numel(), 3):
            flat[place] = odd[(place + seed) % len(odd)]
    else:
        flat[seed % 2 :: 3] = 1 if values.dtype == torch.bool else torch.iinfo(values.dtype).max
    return flat.reshape(shape).clone().to(device)


def environment(device: torch.device) -> dict[str, Any]:
    """What the names of an expression mean on a device."""
    return {
        "torch": torch,
        "d": device,
        "inf": float("inf"),
        "nan": float("nan"),
        "made": functools.partial(made, device=device),
        "wild": functools.partial(wild, device=device),
        "given": functools.partial(entries.given, device=device),
        "entry": entries.entry,
    }


class Values:
    """Draws the arguments of one call; sound tensors share a dtype and fit one shape."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.dtype = self.any_dtype()
        self.shape = chance.choice(SHAPES)
        self.tensors: list[str] = []  # the variables that hold tensors, for aliases

    def any_dtype(self) -> str:
        return self.chance.choices(list(DTYPES), list(DTYPES.values()))[0]

    def one_of(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def happens(self, share: float) -> bool:
        return self.chance.random() < share

    def value(self, kind: str, name: str, size: int | None, hostile: bool) -> str:
        """An expression of a schema's type, as "Optional[List[int]]"; hostile: preferably wrong."""
        if kind.startswith("Optional["):
            return "None" if self.happens(0.35) else self.value(kind[9:-1], name, size, hostile)
        if kind.startswith("List["):
            return self._list(kind[5:-1], name, size, hostile)
        draw = getattr(self, f"_{kind.lower()}", None)
        return str(draw(name, hostile)) if draw else "None"

    def _list(self, kind: str, name: str, size: int | None, hostile: bool) -> str:
        count = size if size else self.one_of(1, 2, 2, 3)
        if kind == "int" and name in ("size", "shape", "output_size", "sizes") and not size:
            count = len(self.shape)
        if hostile:
            count = self.one_of(0, 0, 1, count, count, count + 1, max(count - 1, 0), 9)
        # One hostile element among sound ones gets further than a list of them.
        odd = self.chance.randrange(count) if hostile and count and self.happens(0.6) else -1
        items = [self.value(kind, name, None, hostile=i == odd) for i in range(count)]
        return f"[{', '.join(items)}]"

    def _int(self, name: str, hostile: bool) -> str:
        if hostile:
            return str(self.chance.choice(HUGE if self.happens(0.6) else SMALL))
        rank = len(self.shape)
        if name.startswith(("dim", "axis", "start_dim", "end_dim")) and rank:
            return str(self.chance.randrange(-rank, rank))
        return str(self.chance.choice(SMALL))

    def _float(self, name: str, hostile: bool) -> str:
        return str(self.chance.choice(WILD_REALS if hostile else REALS))

    def _number(self, name: str, hostile: bool) -> str:
        if self.happens(0.4):
            return self._int("", hostile)
        if self.happens(0.1):
            return str(self.one_of("True", "False", "(1+2j)", "complex(nan, 1)"))
        return self._float(name, hostile)

    def _bool(self, name: str, hostile: bool) -> str:
        return str(self.one_of("True", "False"))

    def _str(self, name: str, hostile: bool) -> str:
        return str(self.chance.choice(ODD_WORDS if hostile else WORDS))

    def _scalartype(self, name: str, hostile: bool) -> str:
        return f"torch.{self.any_dtype() if hostile or self.happens(0.5) else self.dtype}"

    def _layout(self, name: str, hostile: bool) -> str:
        return str(
            self.one_of("torch.sparse_coo", "torch.sparse_csr") if hostile else "torch.strided"
        )

    def _device(self, name: str, hostile: bool) -> str:
        return "d"

    def _memoryformat(self, name: str, hostile: bool) -> str:
        return "torch." + str(self.one_of("contiguous_format", "preserve_format", "channels_last",
                                          "channels_last_3d"))  # fmt: skip

    def _generator(self, name: str, hostile: bool) -> str:
        return "torch.Generator(d).manual_seed(3)" if self.happens(0.5) else "None"

    def _tensor(self, name: str, hostile: bool) -> str:
        if hostile and self.tensors and self.happens(0.15):
            return str(self.chance.choice(self.tensors))
        if hostile and self.happens(0.25):
            return self._strange()
        shape, dtype = self.shape, self.dtype
        if hostile:
            shape = self.chance.choice(SHAPES)
            dtype = self.any_dtype() if self.happens(0.5) else dtype
        elif name in OF_CHANNELS and len(shape) > 1 and self.happens(0.7):
            shape = (shape[1],)
        elif self.happens(0.2):
            shape = self._broadcastable(shape)
        if not hostile and name in OF_INDICES:
            low, high = (0, max(min(shape, default=1), 1)) if self.happens(0.8) else (-2, 9)
            return f"made('int64', {shape}, {self.seed()}, {low}, {high})"
        if not hostile and "mask" in name:
            dtype = "bool"
        if self.happens(0.5 if hostile else 0.2):
            return self._laid(dtype, shape)
        maker = "wild" if self.happens(0.4 if hostile else 0.1) else "made"
        return f"{maker}('{dtype}', {shape}, {self.seed()})"

    def seed(self) -> int:
        return self.chance.randrange(100)

    def _broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        first = self.chance.randrange(len(shape) + 1)
        return tuple(1 if self.happens(0.3) else n for n in shape[first:])

    def _laid(self, dtype: str, shape: tuple[int, ...]) -> str:
        """A tensor in an unusual layout."""
        seed, rank = self.seed(), len(shape)
        plain = f"made('{dtype}', {shape}, {seed})"
        ones = tuple(1 if self.happens(0.6) else n for n in shape)
        forms = [
            f"torch._efficientzerotensor({shape}, dtype=torch.{dtype}, device=d)",
            f"made('{dtype}', {ones}, {seed}).expand({shape})",
            f"torch._neg_view({plain})" if dtype != "bool" else plain,
            f"made('{dtype}', {(*shape, 2)}, {seed})[..., 1]",
        ]
        if rank:
            forms += [
                f"{plain}.transpose(0, -1)",
                f"made('{dtype}', {(2 * shape[0] + 1, *shape[1:])}, {seed})[1::2]",
                f"made('{dtype}', ({sum(shape) + 1},), {seed}).as_strided({shape}, {(1,) * rank})",
                f"made('{dtype}', (1,), {seed}).as_strided({(1,) * rank}, {(2**40,) * rank})",
            ]
        if dtype.startswith("complex"):
            forms += [f"{plain}.conj()"] * 4
        return str(self.chance.choice(forms))

    def _strange(self) -> str:
        """What is no strided tensor of the device."""
        plain = f"made('float32', {self.chance.choice(SHAPES)}, {self.seed()})"
        return str(self.one_of(
            f"{plain}.to_sparse()",
            f"{plain}.to('meta')",
            f"{plain}.cpu()",
            f"torch.quantize_per_tensor({plain}, 0.1, 0, torch.quint8)",
            f"made('float32', (), {self.seed()}).cpu()",
            "torch.empty(0, device=d)",
            "torch.sparse_coo_tensor(torch.zeros((2, 0), dtype=torch.int64), torch.zeros(0), "
            "(2, 3)).to(d)",
        ))  # fmt: skip

    def changed(self, expression: str) -> str:
        """The tensor of an expression, made unsuitable in one way."""
        ways = [
            ".expand(2, *[-1] * 9)", ".unsqueeze(0)", ".unsqueeze(-1)", ".flatten()", "[..., :0]",
            "[:0]", "[:1]", "[0]", "[..., 0]", ".to(torch.int64)", ".to(torch.float64)",
            ".to(torch.float16)", ".to(torch.bool)", ".to(torch.complex64)", ".transpose(0, -1)",
            ".to(torch.int32)", ".to(torch.uint8)", ".to('meta')", ".cpu()", ".to_sparse()",
            " * nan", " * 1e30", " - 5", "[None, ..., None]", "[0].expand(X)", ".mul(0)",
            "[..., :1]", ".clone().as_strided((2, 3), (1, 1))", ".to(torch.bfloat16)", ".conj()",
        ]  # fmt: skip
        way = self.chance.choice(ways)
        if way == ".expand(2, *[-1] * 9)":
            return f"torch.stack([{expression}] * 2)"
        if way == "[0].expand(X)":
            return f"(x := {expression})[:1].expand(x.shape)"
        return f"({expression}){way}"

    def out(self, dtype: str | None = None) -> str:
        """What is given as out=."""
        dtype = dtype or self.dtype
        if self.tensors and self.happens(0.2):
            return str(self.chance.choice(self.tensors))
        if self.happens(0.15):
            return self._tensor("out", True)
        shape = self.shape
        return str(self.one_of(
            f"torch.empty(0, dtype=torch.{dtype}, device=d)",
            f"torch.empty(0, dtype=torch.{dtype}, device=d)",
            f"made('{dtype}', {shape}, 1)",
            f"made('{dtype}', (1,), 1).expand({shape or (1,)})",
            f"made('{self.any_dtype()}', {shape}, 1)",
            f"made('{dtype}', {(*shape, 2)}, 1)[..., 0]",
        ))  # fmt: skip
