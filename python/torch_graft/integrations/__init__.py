# python/torch_graft/integrations/__init__.py: libraries that choose devices by a list of names learn the attached one.
"""`import torch_graft.integrations.accelerate` does it for accelerate, `python -m torch_graft run` for all that a
script imports. Importing this package alone changes nothing."""

from torch_graft.integrations.registry import disable, enable, enabled

__all__ = ["disable", "enable", "enabled"]
