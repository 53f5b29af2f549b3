# python/torch_graft/parts/random.py: torch.graft.random.
from torch_graft import device_module

device_module.fill(globals())
