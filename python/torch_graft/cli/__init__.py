# python/torch_graft/cli/__init__.py: the commands of python -m torch_graft; importing it loads nothing.
