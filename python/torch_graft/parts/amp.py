# python/torch_graft/parts/amp.py: torch.graft.amp.
from torch_graft import device_module

device_module.fill(globals())
