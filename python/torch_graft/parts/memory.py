# python/torch_graft/parts/memory.py: torch.graft.memory.
from torch_graft import device_module

device_module.fill(globals())
