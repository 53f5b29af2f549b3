# python/torch_graft/compiler/user_line.py: the line of the user's model that a node comes from.
"""Reads the stack trace that Dynamo left on a node."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import fx

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)', re.MULTILINE)
_INNER = (str(Path(torch.__file__).parent), str(Path(__file__).parent))


def user_line(node: fx.Node) -> str:
    """The innermost line outside PyTorch, as "model.py:12"; empty when nobody knows it."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return ""
    own = [frame for frame in frames if not frame[0].startswith(_INNER)]
    path, line = (own or frames)[-1]
    return f"{Path(path).name}:{line}"


def user_module(node: fx.Node) -> str:
    """The path of the innermost module, as "encoder.layer.0"; empty at the top."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    names = [path for path, _ in stack.values() if isinstance(path, str)]
    if not names:
        return ""
    name = re.sub(r"^L\['[^']*'\]\.?", "", names[-1])
    name = re.sub(r"(?:_modules)?\['?([^'\]]+)'?\]", r".\1", name)
    return name.replace("._modules", "").strip(".")
