# python/torch_graft/parts/streams.py: torch.graft.streams.
from torch_graft import device_module

device_module.fill(globals())
