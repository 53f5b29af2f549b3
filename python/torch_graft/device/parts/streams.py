# python/torch_graft/device/parts/streams.py: torch.graft.streams.
from torch_graft.device import module as device_module

device_module.fill(globals())
