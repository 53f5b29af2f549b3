# python/torch_graft/compiler/literals.py: numbers, strings, words and types in the text form.
"""What needs no graph to be written. Raises sizes.Inexpressible for the rest."""

from __future__ import annotations

import math

import torch

from torch_graft.compiler.placing import carrier
from torch_graft.compiler.sizes import Inexpressible, Sizes

DTYPES = {
    getattr(torch, name): name
    for name in (
        "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
        "float64", "complex64", "complex128",
    )
}  # fmt: skip


def quoted(text: str) -> str:
    """A string between quotes."""
    for sign, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(sign, escape)
    return f'"{text}"'


def float_text(number: float) -> str:
    """The shortest decimal that reads back to the same double, and never an integer's form."""
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "-inf" if number < 0 else "inf"
    return repr(number)


def dtype_text(dtype: torch.dtype) -> str:
    if dtype not in DTYPES:
        raise Inexpressible(
            f"got {dtype}, expected one of the compiler's dtypes ({', '.join(DTYPES.values())})"
        )
    return DTYPES[dtype]


def literal_text(value: object, sizes: Sizes) -> str:
    """Any argument that is no value of the graph and no list."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | torch.SymInt):
        return sizes.text(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, torch.dtype):
        return "@" + dtype_text(value)
    if isinstance(value, torch.memory_format | torch.layout):
        return "@" + str(value).removeprefix("torch.")
    if isinstance(value, torch.device):
        return f"@{carrier(value)}"
    if isinstance(value, complex):
        raise Inexpressible("complex numbers have no text form")
    if isinstance(value, torch.SymFloat | torch.SymBool):
        raise Inexpressible(f"a {type(value).__name__} as an argument depends on the call")
    raise Inexpressible(f"an argument of type {type(value).__name__} has no text form")


def type_text(tensor: torch.Tensor, sizes: Sizes) -> str:
    """dtype, sizes and, where they are not row-major, strides."""
    shape = [sizes.text(size) for size in tensor.size()]
    text = f"{dtype_text(tensor.dtype)}[{', '.join(shape)}]"
    expected: int | torch.SymInt = 1
    plain = True
    for size, stride in zip(reversed(tensor.size()), reversed(tensor.stride()), strict=True):
        plain = plain and _same(stride, expected)
        expected = expected * size
    if plain:
        return text
    return f"{text}({', '.join(sizes.text(stride) for stride in tensor.stride())})"


def _same(a: int | torch.SymInt, b: int | torch.SymInt) -> bool:
    """Equal as expressions; asks no question that would narrow a symbol."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    first = a.node.expr if isinstance(a, torch.SymInt) else a
    second = b.node.expr if isinstance(b, torch.SymInt) else b
    return bool(first == second)
