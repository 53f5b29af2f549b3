# conformance/torch_conformance/run/__init__.py: the command "run": cells in worker processes.
