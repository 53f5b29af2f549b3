# python/torch_graft/deployment/__init__.py: models as files; importing it loads nothing.
