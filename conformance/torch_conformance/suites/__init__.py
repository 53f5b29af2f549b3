# conformance/torch_conformance/suites/__init__.py: the suites of PyTorch's own databases, one aspect after the other.
