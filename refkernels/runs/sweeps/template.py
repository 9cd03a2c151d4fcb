"""What the process reads in that workers are copied from. Importing this is all there is to it.

Nothing read in here is garbage, and looking for it takes a fifth of the time; what is frozen stays
in memory that the copies share.
"""

import gc
from importlib import import_module

from refkernels import registry

gc.disable()
import_module("refkernels.runs.sweeps.chunk")
for _family in registry.families():
    import_module(f"refkernels.{_family}")
gc.freeze()
gc.enable()
