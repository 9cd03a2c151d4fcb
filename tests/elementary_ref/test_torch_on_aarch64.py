"""torch's exp and erf on AArch64 in NumPy: the emulated torch has their bits, so that its
errors are the algorithms', not the emulator's. The figures of erf are those of docs/devices.md.

exp is SLEEF's `expf_u10`. ATen's NEON vectors (vec128_float_neon.h) compute erf as
1 - r t exp(-x^2), t = 1 / (1 + p |x|): Abramowitz and Stegun's 7.1.26, whose absolute error is
1.5e-7. Its exp is that of Arm's Optimized Routines, or SLEEF's where one of the four numbers of a
vector exceeds 87.3 in size.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from refkernels import registry
from refkernels.arithmetic.fused import multiply_add
from refkernels.metrology import digest, ulp_error
from refkernels.reporting.reading import read_records

KEPT = Path(__file__).parents[2] / "benchmarks" / "results" / "cpu-aarch64-emulated"
Floats = npt.NDArray[np.float32]
P = np.float32(0.3275911)
COEFFICIENTS = (-1.453152027, 1.421413741, -0.284496736, 0.254829592)


def rounded_exp(x: Floats) -> Floats:
    return np.exp(x.astype(np.float64)).astype(np.float32)


def neon_erf(x: Floats, exp: Callable[[Floats], Floats] = rounded_exp) -> Floats:
    one = np.ones_like(x)
    t = one / multiply_add(np.full_like(x, P), np.abs(x), one)
    r = np.full_like(x, 1.061405429)
    for coefficient in COEFFICIENTS:
        r = multiply_add(r, t, np.full_like(x, coefficient))
    y = multiply_add(-t * exp(-np.square(x)), r, one)
    return np.where(np.signbit(x), -y, y)


def test_below_two_to_the_minus_25_it_is_zero() -> None:
    x = np.float32(2.0) ** np.arange(-149, -24, dtype=np.float32)
    assert not neon_erf(x).any()
    found = ulp_error(neon_erf(x), registry.get("erf").forward(x)).value[x >= 2.0**-126]
    assert np.allclose(np.abs(found), 2.0**24 / np.sqrt(np.pi), rtol=1e-6)  # 9,465,531


def fused(a: Floats | float, b: Floats | float, c: Floats | float) -> Floats:
    operands = np.broadcast_arrays(*(np.float32(operand) for operand in (a, b, c)))
    return multiply_add(*map(np.ascontiguousarray, operands))


def polynomial(s: Floats, *coefficients: float) -> Floats:
    """By Horner's rule, from the highest power down."""
    value = np.full_like(s, coefficients[0])
    for coefficient in coefficients[1:]:
        value = fused(value, s, coefficient)
    return value


def power(exponent: npt.NDArray[np.int32]) -> Floats:
    return ((exponent + 127) << 23).view(np.float32)


def sleef_exp(x: Floats) -> Floats:
    quotient = np.rint(x * np.float32(1 / np.log(2)))
    s = fused(quotient, -1.428606765330187e-06, fused(quotient, -0.693145751953125, x))
    u = polynomial(s, 0.00019852762, 0.0013930436, 0.00833336, 0.041666485, 0.16666667, 0.5)
    n = np.nan_to_num(quotient).astype(np.int32)
    value = (1 + fused(s * s, u, s)) * power(n >> 1) * power(n - (n >> 1))
    return np.select(
        [x < -104, x > 100, np.isnan(x)], [np.float32(0), np.float32(np.inf), x], value
    )


def arm_exp(x: Floats) -> Floats:
    product = x * np.float32(1 / np.log(2))
    n = np.trunc(product + np.copysign(np.float32(0.5), product))
    r = fused(n, -float.fromhex("0x1.7f7d1cp-20"), fused(n, -float.fromhex("0x1.62e4p-1"), x))
    first, *others = map(
        float.fromhex,
        ("0x1.ffffecp-1", "0x1.0e4020p-7", "0x1.573e2ep-5", "0x1.555e66p-3", "0x1.fffdb6p-2"),
    )
    high = fused(polynomial(r, *others[:2]), r * r, polynomial(r, *others[2:]))
    scale = power(np.nan_to_num(n).astype(np.int32))
    return fused(fused(high, r * r, np.float32(first) * r), scale, scale)


def exp_in_fours(x: Floats) -> Floats:
    special = np.resize(np.abs(x) > np.float32(float.fromhex("0x1.5d5e2ap+6")), -(-x.size // 4) * 4)
    special[x.size :] = False
    whole = np.repeat(special.reshape(-1, 4).any(axis=1), 4)[: x.size]
    return np.where(whole, sleef_exp(x), arm_exp(x))


def kept(name: str, dtype: str) -> dict[str, dict[str, Any]]:
    """The records of the emulated torch, by case."""
    return {
        record["case"]["name"]: record
        for record in read_records(KEPT / "records.jsonl")
        if record["kind"] == "measurement"
        and (record["op"], record["direction"], record["dtype"]) == (name, "forward", dtype)
        and record["settings"].get("machine") == "aarch64"
    }


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("exp", sleef_exp), ("erf", lambda x: neon_erf(x, exp_in_fours))],
)
def test_torch_has_the_bits_of_the_algorithm(
    name: str, algorithm: Callable[[Floats], Floats]
) -> None:
    measured = kept(name, "float32")
    assert len(measured) >= 5
    for case in registry.get(name).cases():
        if case.name in measured:
            x = case.build("float32")[0]["x"]
            with np.errstate(all="ignore"):
                y = algorithm(x.ravel()).reshape(x.shape)
            assert digest(y) == measured[case.name]["digest"], case.name
