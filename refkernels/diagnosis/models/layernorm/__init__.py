"""LayerNorm: models of the frameworks' own algorithms, and variants of the question.

for model in MODELS:
    answers = model.run({"x": x}, {"eps": 1e-5}, "forward", "float32")

A model is an algorithm in the working precision whose bits are compared with a kernel's. A model
with a framework's bits shows how the framework computes. A model with a `cause` names a fault.
"""

from refkernels.diagnosis.models.layernorm.catalogue import MODELS
from refkernels.diagnosis.models.layernorm.model import Model

__all__ = ["MODELS", "Model"]
