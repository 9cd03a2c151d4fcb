"""Run in torch's interpreter before a training: its optimizers then do without torch's compiler.

A first step imports the compiler, only to mark the step as one that is not compiled. That takes
longer than to import torch, and changes nothing where nothing is compiled.
"""

import sys
import types

compiler = types.ModuleType("torch._dynamo")
compiler.disable = lambda function, *_, **__: function
compiler.graph_break = lambda *_, **__: None
sys.modules.setdefault("torch._dynamo", compiler)
