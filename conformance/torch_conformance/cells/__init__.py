# conformance/torch_conformance/cells/__init__.py: the cells of a run, what is expected of each, and what runs one.
