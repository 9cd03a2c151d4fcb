"""Matrix instructions, against their definition in exact arithmetic."""

from fractions import Fraction
from math import floor, frexp
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refkernels import matmul_ref, registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.exact import from_fractions
from refkernels.contexts.tensor_cores import CORES, FLOAT8, Core, TensorCores, add_products
from refkernels.contexts.working import data


def cut(x: Fraction, unit: Fraction) -> Fraction:
    """Towards zero."""
    steps = floor(abs(x) / unit) * unit
    return steps if x >= 0 else -steps


def exponent(x: float) -> int:
    return frexp(x)[1] - 1


def instructed(a: list[float], b: list[float], core: Core) -> Fraction:
    total = Fraction(0)
    for start in range(0, len(a), core.k):
        pairs = list(zip(a[start : start + core.k], b[start : start + core.k], strict=True))
        tops = [exponent(x) + exponent(y) for x, y in pairs if x and y]
        tops += [exponent(float(total))] if total else []
        if not tops:
            continue
        unit = Fraction(2) ** (max(tops) - core.fraction)
        terms = [total, *(Fraction(x) * Fraction(y) for x, y in pairs)]
        total = sum((cut(term, unit) for term in terms), Fraction(0))
        if core.nearest:
            total = Fraction(float(from_fractions([total], (1,)).round("float16")[0][0]))
        elif total:
            total = cut(total, Fraction(2) ** (exponent(float(total)) - core.p + 1))
    return total


HALF = Core(16, 25, 11, nearest=True)


@pytest.mark.parametrize("core", [*CORES.values(), *FLOAT8.values(), HALF])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_products_are_added_as_the_instruction_defines(dtype: Any, core: Core) -> None:
    rng = np.random.default_rng(core.k)
    values = rng.standard_normal((2, 3, 70)) * np.exp(rng.standard_normal((2, 3, 70)))
    values[rng.random(values.shape) < 0.1] = 0.0
    a, b = values.astype(dtype).astype(np.float64)
    result = np.zeros((3, 3))
    add_products(a[None], b[None], result[None], core)
    for i, j in np.ndindex(3, 3):
        assert Fraction(float(result[i, j])) == instructed(list(a[i]), list(b[j]), core)


def test_a_product_of_stacked_matrices_is_each_matrix_s() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 1, 3, 40)), rng.standard_normal((4, 40, 2))
    xp = TensorCores("float16")
    x, y = (xp.value(formats.round_to(part, formats.BINARY16)) for part in (a, b))
    together = data(xp.matmul(x, y))
    assert together.shape == (2, 4, 3, 2)
    for i, j in np.ndindex(2, 4):
        alone = data(xp.matmul(xp.value(data(x)[i, 0]), xp.value(data(y)[j])))
        np.testing.assert_array_equal(together[i, j], alone)


def adversarial(k: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Products of one sign, of both, and far below the first: what is cut adds up."""
    a, b = np.abs(rng.standard_normal((6, k))), np.abs(rng.standard_normal((k, 5)))
    a[2:4] *= rng.choice([-1.0, 1.0], (2, k))
    a[4:], b[:, 3:] = 2.0**-12 * (2.0 - 2.0**-9), 2.0**-12 * (2.0 - 2.0**-9)
    a[4:, 0], b[0, 3:] = 1.0, 1.0
    return a, b


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("k", [3, 16, 100, 4096])
def test_a_sum_by_matrix_instructions_is_within_the_bound(dtype: Any, core: str, k: int) -> None:
    a, b = (part.astype(dtype) for part in adversarial(k, np.random.default_rng(k)))
    c = np.zeros((6, 5))
    add_products(*(part[None].astype(float, "C") for part in (a, b.T)), c[None], CORES[core])
    exact, op = matmul_ref.forward(a, b), registry.get("matmul")
    for format in ("float32", formats.of(a).name):
        allowed = [matmul_ref.forward_bound(a, b, format=format)]
        if format != "float32":
            allowed += op.definition.bound("forward", {"a": a, "b": b}, {}, format).values()
        error = np.abs(to_float64(formats.cast(c, format)) - exact.hi - exact.lo)
        assert all((error <= limit).all() for limit in allowed)
