"""Imports for the process from which workers are forked. Importing this module does all the work.

Nothing imported here is garbage, and collection would take a fifth of the time. Frozen objects stay
in memory that the forked workers share.
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
