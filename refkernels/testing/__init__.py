"""Assertions for kernel authors: the tolerance comes from the inputs, never from a guess.

    import numpy as np
    from refkernels.testing import assert_kernel

    def test_my_layernorm():
        x = np.random.default_rng(0).standard_normal((4, 768), dtype=np.float32)
        assert_kernel("layernorm", {"x": x}, my_layernorm(x), {"eps": 1e-5})

`assert_kernel` finds oracle and bound itself; `assert_rounding` takes them; `assert_ulp` takes a
fixed number of ulp. `cases` gives an op's own hard cases to `pytest.mark.parametrize`, and
`strategies`, a module of its own, draws questions for Hypothesis; `tolerances` gives the atol and
rtol for a suite that must keep `allclose`; `judge` is for kernels that may have been written to
pass. Arrays may be NumPy arrays or anything with DLPack or `__array__`.

A wrong answer raises AssertionError, whose message says where it is wrong, by how much and, as far
as `refkernels.explain` finds it, why; a call that makes no sense, TypeError or ValueError. What is
not certified, or left undecided by overflow, underflow or cancellation, issues a warning.
"""

from refkernels.testing.assertions import assert_kernel, assert_rounding, assert_ulp
from refkernels.testing.cases import cases
from refkernels.testing.demands import (
    IllConditionedWarning,
    RangeWarning,
    UncertifiedWarning,
    UnusualErrorWarning,
)
from refkernels.testing.judging import judge, junit
from refkernels.testing.tolerances import Tolerance, tolerances

__all__ = [
    "IllConditionedWarning",
    "RangeWarning",
    "Tolerance",
    "UncertifiedWarning",
    "UnusualErrorWarning",
    "assert_kernel",
    "assert_rounding",
    "assert_ulp",
    "cases",
    "judge",
    "junit",
    "tolerances",
]
