# python/torch_graft/process/__init__.py: other processes and ranks; importing it loads nothing.
