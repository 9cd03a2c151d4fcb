"""Reference kernels with certified answers for deep-learning ops.

`refkernels.layernorm_ref`, `matmul_ref` and `trig_ref` are the oracles; `refkernels.testing`
holds the assertions for kernel authors. Names are loaded when first used (PEP 562), so that
importing this package imports the standard library only.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_MODULES = ("layernorm_ref", "matmul_ref", "trig_ref", "metrology", "testing", "frameworks")
_NAMES = {
    "Enclosure": "refkernels.arithmetic.enclosure",
    "explain": "refkernels.diagnosis.explain",
    "measure": "refkernels.measurement",
    "ulp_distance": "refkernels.metrology",
    "ulp_error": "refkernels.metrology",
}

__all__ = ["__version__", *_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"refkernels.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'refkernels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
