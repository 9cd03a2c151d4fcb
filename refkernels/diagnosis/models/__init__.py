"""Models: algorithms in the working precision whose bits are compared with a kernel's.

for model in MODELS:
    answers = model.run({"x": x}, {"eps": 1e-5}, "forward", "float32")

A model that gives a framework's bits says how the framework computes; where its `cause` is not
None, it says what to blame.
"""

from refkernels.diagnosis.models.catalogue import MODELS
from refkernels.diagnosis.models.model import Model

__all__ = ["MODELS", "Model"]
