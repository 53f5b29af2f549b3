# conformance/torch_conformance/lint/__init__.py: the command "lint": tests that are tied to CUDA.
