# python/torch_graft/offloading/__init__.py: models whose weights stay in host memory.
