# conformance/torch_conformance/device/__init__.py: the device under test, found, described, and asked what it can do.
