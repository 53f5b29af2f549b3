# conformance/torch_conformance/tensors/__init__.py: the values of tensors: compared, carried to a device, and chosen among equals.
