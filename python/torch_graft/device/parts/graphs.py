# python/torch_graft/device/parts/graphs.py: torch.graft.graphs.
from torch_graft.device import module as device_module

device_module.fill(globals())
