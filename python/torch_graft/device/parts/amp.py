# python/torch_graft/device/parts/amp.py: torch.graft.amp.
from torch_graft.device import module as device_module

device_module.fill(globals())
