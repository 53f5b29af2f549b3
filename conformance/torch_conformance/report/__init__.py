# conformance/torch_conformance/report/__init__.py: what is kept of a run: its files, pages, history and site.
