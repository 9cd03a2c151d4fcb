"""The float64 tier of every op that has one keeps the contract of `arithmetic.fast.Fast`."""

import platform
import re
from fractions import Fraction

import numba
import numpy as np
import pytest

from refkernels import activation_ref, registry, trig_ref
from refkernels.arithmetic import formats, tiers
from refkernels.op import Op
from refkernels.trig_ref import points

FAST = {op.name: op for op in registry.ops().values() if op.fast is not None}
each = pytest.mark.parametrize("op", FAST.values(), ids=FAST)
DOUBLED = [name for name, op in FAST.items() if op.fast and op.fast.values]


def adversaries(op: Op) -> np.ndarray:
    """Random bits, the ends of every binade, where pieces meet, and the op's own inputs."""
    rng = np.random.default_rng(12)
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
    ends = (np.arange(0, 256, dtype=np.int64)[:, None] << 23) + np.arange(-2, 3)
    ends = ends[(ends >= 0) & (ends < 2**31)].astype(np.uint32)
    meet = np.float32([3.0, 150.0, 0.0, 104.0]).view(np.uint32)[:, None] + np.arange(-40, 41)
    patterns = np.concatenate([bits, ends, meet.ravel().astype(np.uint32)])
    patterns = np.concatenate([patterns, patterns ^ np.uint32(1 << 31)]).view(np.float32)
    own = np.concatenate([case.build("float32")[0]["x"].ravel() for case in op.cases()])
    near = np.concatenate([rng.uniform(-r, r, 7000) for r in (1, 8, 160)]).astype(np.float32)
    x = np.concatenate([patterns, own.astype(np.float32), near])
    if op in trig_ref.OPS:
        turns = np.arange(0.5, 30, 0.5, np.float32)
        around = [np.nextafter(turns, np.float32(end)) for end in (0.0, np.inf)]
        hardest = points.hardest(formats.BINARY32).astype(np.float32)
        x = np.concatenate([x, turns, *around, hardest, -hardest])
    return x


@each
def test_the_error_is_within_the_bound_at_every_adversary(op: Op) -> None:
    assert op.fast is not None
    x = adversaries(op)
    hi = np.empty(x.size)
    op.fast.kernel(x, hi)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    true = op.evaluate("forward", {"x": wide}, {}, ("ulp", "float64", 2.0**-20))["y"]
    scale = np.clip(true.scale, -5000, 5000).astype(np.int32)
    with np.errstate(under="ignore", over="ignore"):
        exact, low, radius = (np.ldexp(part, scale) for part in (true.hi, true.lo, true.radius))
    limit = (~np.isfinite(true.hi) | (true.hi == 0)) & (true.radius == 0)
    np.testing.assert_array_equal(hi[limit], exact[limit])
    zeros = limit & (exact == 0) & (np.isfinite(x) | (op not in activation_ref.OPS))
    np.testing.assert_array_equal(np.signbit(hi[zeros]), np.signbit(exact[zeros]))
    at_infinity = np.isinf(x) & np.isfinite(true.hi)
    np.testing.assert_allclose(hi[at_infinity], exact[at_infinity], rtol=op.fast.error)
    limit |= at_infinity
    assert (np.sign(hi) == np.sign(true.hi))[~limit].all()
    tiny = (np.abs(hi) <= 2.0**-200) & (np.abs(exact) <= 2.0**-200)
    huge = (np.abs(hi) >= 2.0**200) & (np.abs(exact) >= 2.0**200)
    assert np.isfinite(hi[~limit]).all()
    ordinary = ~limit & ~tiny & ~huge
    error = np.abs((hi[ordinary] - exact[ordinary]) - low[ordinary])
    allowed = op.fast.error * np.abs(exact[ordinary]) - radius[ordinary]
    assert (error <= allowed).all(), x[ordinary][np.argmax(error - allowed)]
    assert ordinary.sum() > 5000


@each
@pytest.mark.parametrize("format", ["float16", "bfloat16", "float32"])
def test_no_rounding_of_a_tail_needs_multiple_precision(op: Op, format: str) -> None:
    """Subnormals and ends of all binades: a value that saturates or underflows is a zero or a limit
    of known sign, and its rounding is that of the formula's reading or of the double-doubles."""
    bits = (np.arange(0, 255)[:, None] << 23) + np.array([1, 1 << 22, (1 << 23) - 1])
    bits = np.concatenate([bits.ravel(), np.arange(1, 1 << 23, 2999)])
    bits = np.concatenate([bits, bits + (1 << 31)]).astype(np.uint32)
    x = bits.view(np.float32)
    with tiers.counted() as counted:
        certified = op.evaluate("forward", {"x": x}, {}, ("rounding", format))["y"]
    assert counted.get("exact", 0) == 0
    wide = op.evaluate("forward", {"x": x.astype(np.float64)}, {}, ("rounding", format))["y"]
    (rounded, sure), (right, certain) = (each.round(format) for each in (certified, wide))
    assert (sure & certain).all()
    np.testing.assert_array_equal(np.isnan(rounded), nan := np.isnan(right))
    assert rounded[~nan].tobytes() == right[~nan].tobytes()


@pytest.mark.parametrize("name", DOUBLED)
def test_the_double_doubles_hold_the_exact_value(name: str) -> None:
    fast = FAST[name].fast
    assert fast is not None
    assert fast.values is not None
    x = adversaries(FAST[name])
    x = x[(np.abs(x) < 4) & (x != 0)].astype(np.float64)
    hi, lo, radius = np.empty((3, x.size))
    fast.values(x, hi, lo, radius, np.empty(x.size, np.int64))
    assert (np.abs(lo) + radius <= 2.0**-52 * np.abs(hi)).all()
    assert (radius <= np.where(np.abs(x) < 2.0**-60, np.abs(lo / 2), 2.0**-98 * np.abs(hi))).all()
    for v, *parts in zip(x.tolist(), hi.tolist(), lo.tolist(), radius.tolist(), strict=True):
        v, high, low, reach = map(Fraction, (v, *parts))
        line = (min(max(v, -3), 3) + 3) / 6
        assert abs((v * line if name == "hardswish" else line) - high - low) <= reach


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 assembly")
@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
def test_the_kernel_is_vectorised(name: str) -> None:
    """Compiled afresh: Numba does not show the assembly of cached code."""
    fast = FAST[name].fast
    assert fast is not None
    fresh = numba.njit(error_model="numpy", nogil=True)(fast.kernel.py_func)  # type: ignore[attr-defined]
    fresh(np.ones(8, np.float32), np.empty(8))
    (assembly,) = fresh.inspect_asm().values()
    assert len(re.findall(r"divpd|fmadd\d+pd|mulpd", assembly)) > 10


def test_bounds_are_small() -> None:
    assert all(op.fast.error <= 2.0**-44 for op in FAST.values() if op.fast)
