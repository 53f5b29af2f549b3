# python/torch_graft/__init__.py: the package behind torch.graft; importing it loads nothing heavy.
"""Attaches any accelerator to stock PyTorch through one small driver.

`import torch` calls _autoload by itself; with TORCH_DEVICE_BACKEND_AUTOLOAD=0, call it yourself.
"""

from __future__ import annotations

import logging
from typing import Any

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name == "_C":
        from torch_graft.extension import load

        return load()
    if name == "optimize":
        from torch_graft.compiler.optimizing import optimize

        return optimize
    if name == "deploy":
        from torch_graft.deployment.writing import deploy

        return deploy
    if name == "deploy_training_step":
        from torch_graft.deployment.training import deploy_training_step

        return deploy_training_step
    if name == "load":
        from torch_graft.deployment.loading import load as load_model

        return load_model
    if name == "__version__":
        from importlib.metadata import version

        return version("torch-graft")
    raise AttributeError(f"module 'torch_graft' has no attribute {name!r}")


def _autoload() -> None:
    """Makes the device known to PyTorch. Never raises: what goes wrong becomes one warning."""
    import warnings

    try:
        from torch_graft.attaching import attach

        attach()
    except Exception as error:
        warnings.warn(
            f"Graft could not attach to PyTorch, so its devices are missing: {error}. "
            "Run `python -m torch_graft doctor`; TORCH_DEVICE_BACKEND_AUTOLOAD=0 does not attach "
            "Graft.",
            stacklevel=2,
        )
