# conformance/torch_conformance/testing/__init__.py: what test files import: cells as items, and capabilities.
from torch_conformance.testing.items import *  # noqa: F403 (what its __all__ names)
