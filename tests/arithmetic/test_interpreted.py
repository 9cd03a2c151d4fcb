"""A kernel that Python runs itself gives the compiled one's bits, FMA included."""

import numpy as np
import pytest

from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.interpreted import _ROUNDED_TWICE, by_rationals, interpreted
from refkernels.arithmetic.jit import njit
from refkernels.kernels.functions import FUNCTIONS
from refkernels.registry import ops

SPECIAL = (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.0**-1022, 1.7e308, -1.7e308)


@njit
def fused(a, b, c):  # type: ignore[no-untyped-def]
    return fma(a, b, c)


def hexes(values):  # type: ignore[no-untyped-def]
    return [float(value).hex() for value in (values if isinstance(values, tuple) else (values,))]


def test_fma_is_rounded_once_for_numbers_of_every_size() -> None:
    rng = np.random.default_rng(0)
    drawn = np.ldexp(rng.standard_normal((3000, 3)), rng.integers(-1070, 1000, (3000, 3)))
    drawn[1::4] = rng.choice(SPECIAL, drawn[1::4].shape)
    with np.errstate(all="ignore"):
        drawn[::2, 2] = -drawn[::2, 0] * drawn[::2, 1]  # the error of the product
        for triple in drawn:
            wanted = hexes(fused(*triple))
            assert hexes(interpreted(fused)(*triple)) == hexes(by_rationals(*triple)) == wanted
    assert len(drawn) > 0


def test_a_fused_multiply_that_rounds_twice_is_detected() -> None:
    for a, b, c in _ROUNDED_TWICE:
        assert by_rationals(a, b, c) == fused(a, b, c)
        assert a * b + c != fused(a, b, c)
    a, b, c = map(np.longdouble, _ROUNDED_TWICE[1])
    if np.finfo(np.longdouble).nmant == 63:
        assert float(a * b + c) != fused(*_ROUNDED_TWICE[1])


KERNELS = {
    function.name: (function.values,) for function in FUNCTIONS.values() if function.values
} | {f"fast {name}": (op.fast.values,) for name, op in ops().items() if op.fast and op.fast.values}


@pytest.mark.parametrize("name", KERNELS)
def test_double_doubles_of_a_function_have_the_kernels_bits(name: str) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 64, 60, dtype=np.uint64)
    x = np.concatenate([rng.normal(0.0, 3.0, 40), bits.view(np.float64), SPECIAL])
    for kernel in KERNELS[name]:
        wanted, got = ([*np.zeros((3, x.size)), np.zeros(x.size, np.int64)] for _ in range(2))
        kernel(x, *wanted)
        with np.errstate(all="ignore"):
            interpreted(kernel)(x, *got)
        assert list(map(hexes, map(tuple, got))) == list(map(hexes, map(tuple, wanted)))
