# python/torch_graft/device/parts/random.py: torch.graft.random.
from torch_graft.device import module as device_module

device_module.fill(globals())
