# python/torch_graft/parts/graphs.py: torch.graft.graphs.
from torch_graft import device_module

device_module.fill(globals())
