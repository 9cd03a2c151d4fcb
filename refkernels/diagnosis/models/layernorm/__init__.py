"""LayerNorm: models of the frameworks' own algorithms, and other questions.

for model in MODELS:
    answers = model.run({"x": x}, {"eps": 1e-5}, "forward", "float32")

A model is an algorithm in the working precision whose bits are compared with a kernel's. One that
gives a framework's bits says how the framework computes; where its `cause` is not None, it says
what to blame.
"""

from refkernels.diagnosis.models.layernorm.catalogue import MODELS
from refkernels.diagnosis.models.layernorm.model import Model

__all__ = ["MODELS", "Model"]
