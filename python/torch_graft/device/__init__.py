# python/torch_graft/device/__init__.py: torch.graft and its parts; importing it loads nothing.
