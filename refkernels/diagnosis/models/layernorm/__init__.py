"""LayerNorm: models of the frameworks' own algorithms, and variants of the question.

Each is an algorithm in the working precision, whose bits are compared with a kernel's. Where two
models give the same bits, the first one explains them.
"""

from refkernels.diagnosis.models.layernorm import mindspore_cpu, oneflow_cpu, paddle_cpu, torch_cpu
from refkernels.diagnosis.models.layernorm.model import Model

MODELS: tuple[Model, ...] = (
    *torch_cpu.MODELS,
    *paddle_cpu.MODELS,
    *mindspore_cpu.MODELS,
    oneflow_cpu.MODEL,
)
