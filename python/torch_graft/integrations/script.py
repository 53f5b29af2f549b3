# python/torch_graft/integrations/script.py: a rank of `torch_graft run`: integrations first, then the user's script.
"""python -m torch_graft.integrations.script train.py ..., with the integrations named in GRAFT_INTEGRATIONS.

The script runs as this very module, so that a spawned child, which runs its parent's main module again by
name, enables the integrations, too.
"""

from torch_graft.integrations.registry import load_script as _load_script

exec(_load_script(globals()), globals())
