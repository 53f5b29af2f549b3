# python/torch_graft/device/parts/memory.py: torch.graft.memory.
from torch_graft.device import module as device_module

device_module.fill(globals())
