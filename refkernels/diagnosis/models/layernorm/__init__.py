"""LayerNorm: models of the frameworks' own algorithms, and variants of the question.

Each is an algorithm in the working precision, whose bits are compared with a kernel's.
"""

from refkernels.diagnosis.models.layernorm.catalogue import MODELS
from refkernels.diagnosis.models.layernorm.model import Model

__all__ = ["MODELS", "Model"]
