"""torch's float32 erf on AArch64 in NumPy: the figures that docs/devices.md gives.

ATen's NEON vectors (vec128_float_neon.h) compute 1 - r t exp(-x^2), t = 1 / (1 + p |x|): Abramowitz
and Stegun's 7.1.26, whose absolute error is 1.5e-7. Here exp is rounded correctly.
"""

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic.fused import multiply_add
from refkernels.metrology import ulp_error

Floats = npt.NDArray[np.float32]
P = np.float32(0.3275911)
COEFFICIENTS = (-1.453152027, 1.421413741, -0.284496736, 0.254829592)


def neon_erf(x: Floats) -> Floats:
    one = np.ones_like(x)
    t = one / multiply_add(np.full_like(x, P), np.abs(x), one)
    r = np.full_like(x, 1.061405429)
    for coefficient in COEFFICIENTS:
        r = multiply_add(r, t, np.full_like(x, coefficient))
    power = np.exp(-np.square(x).astype(np.float64)).astype(np.float32)
    return np.copysign(multiply_add(-t * power, r, one), x)


def errors(x: Floats) -> npt.NDArray[np.float64]:
    errors: npt.NDArray[np.float64] = np.abs(
        ulp_error(neon_erf(x), registry.get("erf").forward(x)).value
    )
    return errors


def test_below_two_to_the_minus_25_it_is_zero() -> None:
    x = np.float32(2.0) ** np.arange(-149, -24, dtype=np.float32)
    assert not neon_erf(x).any()
    normal = x[x >= 2.0**-126]
    assert np.allclose(errors(normal), 2.0**24 / np.sqrt(np.pi), rtol=1e-6)  # 9,465,531


def test_digits_return_with_the_argument() -> None:
    found = errors(np.array([1e-6, 1e-3, 0.1, 1.0, 3.0], np.float32))
    assert (np.diff(found) < 0.0).all()
    assert found[0] > 1e5
    assert found[-1] < 1.0
