# conformance/torch_conformance/fuzz/__init__.py: the command "fuzz": hostile calls.
