"""Reference kernels with certified answers for deep-learning ops.

Modules whose names end in `_ref` are the oracles; `testing` holds the assertions for kernel
authors. Names are loaded when first used (PEP 562), so that importing this package imports the
standard library only; type checkers see them all.
"""

from typing import TYPE_CHECKING

from refkernels.importing import install as _install

__version__ = "0.1.0"

_MODULES = (
    "activation_ref",
    "attention_ref",
    "binary_ref",
    "clip_ref",
    "convolution_ref",
    "distance_ref",
    "dropout_ref",
    "elementary_ref",
    "embedding_ref",
    "experts_ref",
    "frameworks",
    "fused_ref",
    "layernorm_ref",
    "loss_ref",
    "matmul_ref",
    "metrology",
    "norm_ref",
    "optimizer_ref",
    "quantization_ref",
    "reduction_ref",
    "registry",
    "scaled_matmul_ref",
    "scan_ref",
    "schedule_ref",
    "softmax_ref",
    "testing",
    "trig_ref",
)
_NAMES = {
    "Enclosure": "refkernels.arithmetic.enclosure",
    "explain": "refkernels.diagnosis.explain",
    "load_records": "refkernels.reporting.frames",
    "measure": "refkernels.runs.measurement",
    "oracle": "refkernels.programs",
    "probe": "refkernels.diagnosis.probe",
    "profile": "refkernels.profiling.program",
    "ulp_distance": "refkernels.metrology",
    "ulp_error": "refkernels.metrology",
}

_install()

__all__ = [
    "__version__",
    *_MODULES,
    *_NAMES,
]

if TYPE_CHECKING:  # one line for each lazy name and nothing else: a checker reads its type here
    from refkernels import activation_ref as activation_ref
    from refkernels import attention_ref as attention_ref
    from refkernels import binary_ref as binary_ref
    from refkernels import clip_ref as clip_ref
    from refkernels import convolution_ref as convolution_ref
    from refkernels import distance_ref as distance_ref
    from refkernels import dropout_ref as dropout_ref
    from refkernels import elementary_ref as elementary_ref
    from refkernels import embedding_ref as embedding_ref
    from refkernels import experts_ref as experts_ref
    from refkernels import frameworks as frameworks
    from refkernels import fused_ref as fused_ref
    from refkernels import layernorm_ref as layernorm_ref
    from refkernels import loss_ref as loss_ref
    from refkernels import matmul_ref as matmul_ref
    from refkernels import metrology as metrology
    from refkernels import norm_ref as norm_ref
    from refkernels import optimizer_ref as optimizer_ref
    from refkernels import quantization_ref as quantization_ref
    from refkernels import reduction_ref as reduction_ref
    from refkernels import registry as registry
    from refkernels import scaled_matmul_ref as scaled_matmul_ref
    from refkernels import scan_ref as scan_ref
    from refkernels import schedule_ref as schedule_ref
    from refkernels import softmax_ref as softmax_ref
    from refkernels import testing as testing
    from refkernels import trig_ref as trig_ref
    from refkernels.arithmetic.enclosure import Enclosure as Enclosure
    from refkernels.diagnosis.explain import explain as explain
    from refkernels.diagnosis.probe import probe as probe
    from refkernels.metrology import ulp_distance as ulp_distance
    from refkernels.metrology import ulp_error as ulp_error
    from refkernels.profiling.program import profile as profile
    from refkernels.programs import oracle as oracle
    from refkernels.reporting.frames import load_records as load_records
    from refkernels.runs.measurement import measure as measure
else:

    def __getattr__(name):
        import importlib

        if name in _MODULES:
            return importlib.import_module(f"refkernels.{name}")
        if name in _NAMES:
            return getattr(importlib.import_module(_NAMES[name]), name)
        raise AttributeError(f"module 'refkernels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
