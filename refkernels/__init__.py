"""Reference kernels with certified answers for deep-learning ops.

The public names stand below, by what they are for; beside them are the commands, the assertions of
`testing`, `capture` and `alignment.align`, and `judging.judge`. Names are loaded when first used
(PEP 562), so that importing this package imports the standard library only.
"""

import importlib

from refkernels.importing import install

__version__ = "0.1.0"

_MODULES = (
    # the oracles
    *("activation_ref", "attention_ref", "binary_ref", "clip_ref", "convolution_ref"),
    *("distance_ref", "dropout_ref", "elementary_ref", "embedding_ref", "experts_ref"),
    *("fft_ref", "fused_ref", "layernorm_ref", "loss_ref", "matmul_ref", "norm_ref"),
    *("optimizer_ref", "quantization_ref", "reduction_ref", "scaled_attention_ref"),
    *("scaled_matmul_ref", "scan_ref"),
    *("schedule_ref", "softmax_ref", "trig_ref"),
    # their ops by name, figures of errors, assertions, and the frameworks' adapters
    *("registry", "metrology", "testing", "frameworks"),
)
_NAMES = {
    # an oracle of one's own, and what it answers
    "oracle": "refkernels.programs",
    "Enclosure": "refkernels.arithmetic.enclosure",
    # how far, why, and what to ask next
    "ulp_error": "refkernels.metrology",
    "ulp_distance": "refkernels.metrology",
    "explain": "refkernels.diagnosis.explain",
    "probe": "refkernels.diagnosis.probe",
    # whole programs, and runs over frameworks
    "profile": "refkernels.profiling.program",
    "measure": "refkernels.runs.measurement",
    "load_records": "refkernels.reporting.frames",
}
__all__ = ["__version__", *_MODULES, *_NAMES]

install()


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"refkernels.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'refkernels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
