"""Gradients by formulas that lose digits are named. Of right kernels of functions and of gradients,
nothing is proven or matched but what their own formula does, on arguments of any size."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hunting import HUNT, one_in

from refkernels import explain, registry

sys.path.append(str(Path(__file__).parent.parent / "judge" / "right"))
import activations
import functions
import gelu

Array = npt.NDArray[np.generic]
WIDE = {np.float32: np.float64, np.float64: np.longdouble}


def from_result(function: Callable[[Array], Array], slope: Callable[[Array], Array]) -> object:
    """dy times a slope that is computed from the rounded result."""
    return lambda dy, x: dy * slope(function(x.astype(WIDE[x.dtype.type])).astype(x.dtype))


def gaussian(dy: Array, x: Array) -> Array:
    return dy * (x.dtype.type(2 / math.sqrt(math.pi)) * np.exp(-(x * x)))


KERNELS = {
    "sigmoid": (
        from_result(lambda x: 1 / (1 + np.exp(-x)), lambda y: (1 - y) * y), "slope_from_result", 12,
    ),
    "tanh": (from_result(np.tanh, lambda y: 1 - y * y), "slope_from_result", 6),
    "expm1": (from_result(np.expm1, lambda y: y + 1), "slope_from_result", 12),
    "asin": (lambda dy, x: dy / np.sqrt(1 - x * x), "one_minus_square", 1),
    "acos": (lambda dy, x: -(dy / np.sqrt(1 - x * x)), "one_minus_square", 1),
    "erf": (gaussian, "rounded_exponent", 8),
    "erfc": (lambda dy, x: -gaussian(dy, x), "rounded_exponent", 8),
    "rsqrt": (lambda dy, x: dy * (x.dtype.type(-0.5) / np.sqrt(x * x * x)), "cubed_argument", 0),
}  # fmt: skip


def question(dtype: type, size: float) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 2000)
    if size == 0:  # positive numbers of all sizes
        x = np.exp(x * 0.9 * math.log(np.finfo(dtype).max))
    else:
        x = np.copysign(1 - (1 - np.abs(x)) ** 4, x) if size == 1 else size * x
    return rng.normal(0, 1, 2000).astype(dtype), x.astype(dtype)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("op", KERNELS)
def test_a_formula_that_loses_digits_is_named(op: str, dtype: type) -> None:
    kernel, cause, size = KERNELS[op]
    dy, x = question(dtype, size)
    with np.errstate(all="ignore"):
        dx = kernel(dy, x)
    found = explain(op, {"dy": dy, "x": x}, {"dx": dx}, direction="backward")
    assert "unusual" in found.flags or found.verdict == "exceeds_bound"
    assert found.cause == cause


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_product_before_the_quotient_of_hypots_gradient_is_named(dtype: type) -> None:
    rng = np.random.default_rng(1)
    lowest = math.log(float(np.finfo(dtype).tiny))
    a, b, dy = (
        (np.exp(lowest * rng.uniform(0, 0.9, 1000)) * rng.choice([-1, 1], 1000)).astype(dtype)
        for _ in range(3)
    )
    wide = np.longdouble if dtype == np.float64 else np.float64
    y = np.hypot(a.astype(wide), b.astype(wide)).astype(dtype)
    inputs = {"dy": dy, "a": a, "b": b}
    early = explain("hypot", inputs, {"da": dy * a / y, "db": dy * b / y}, direction="backward")
    assert (early.cause, early.confidence) == ("product_before_quotient", "proven")
    late = explain("hypot", inputs, {"da": dy * (a / y), "db": dy * (b / y)}, direction="backward")
    assert late.cause in (None, "summation_order")


own = vars(functions)
s, p, i, e = (own[name] for name in ("_sigmoid", "_sigmoid_pieces", "_inner", "_ERF"))


def t(x: Array) -> Array:
    return np.tanh(own["_softplus"](x))


SLOPES = {
    "sigmoid": [lambda x: s(x) * (1 - s(x)), lambda x: p(x) - p(x) ** 2, lambda x: p(x) * p(-x)],
    "silu": [lambda x: s(x) * (1 + x * (1 - s(x))), lambda x: p(x) + x * p(x) * (1 - p(x))],
    "tanh": [lambda x: 1 - np.tanh(x) ** 2, lambda x: (1 - np.tanh(x)) * (1 + np.tanh(x))],
    "softplus": [s, p, lambda x: 1 - p(-x), lambda x: np.exp(x) / (1 + np.exp(x))],
    "log_sigmoid": [lambda x: 1 - s(x), lambda x: 1 - p(x), lambda x: p(-x)],
    "mish": [lambda x: t(x) + x * (1 - t(x) ** 2) * s(x)],
    "elu": [lambda x: np.where(x > 0, 1, np.exp(x)), lambda x: 1 + np.expm1(np.minimum(x, 0))],
    "softsign": [lambda x: 1 / (1 + abs(x)) ** 2, lambda x: 1 / (1 + abs(x)) / (1 + abs(x))],
    "expm1": [np.exp, lambda x: np.expm1(x) + 1],
    "rsqrt": [lambda x: -0.5 / np.sqrt(x) / x, lambda x: -0.5 * (1 / np.sqrt(x)) ** 3],
    "erf": [lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x)],
    "gelu": [lambda x: (1 + e(x / 2**0.5).astype("f4")) / 2 + 0.3989423 * x * np.exp(-x * x / 2)],
    "gelu_tanh": [
        lambda x: p(2 * i(x)) * (1 + x * p(-2 * i(x)) * 1.5957692 * (1 + 0.134145 * x * x))
    ],
    "asin": [lambda x: 1 / np.sqrt(1 - x * x), lambda x: 1 / np.sqrt((1 - x) * (1 + x))],
    "swiglu": [lambda a, b: (s(a) * (1 + a * (1 - s(a))) * b, a * s(a))],
    "hypot": [lambda a, b: (a / np.hypot(a, b), b / np.hypot(a, b))],
    "atan2": [lambda a, b: (b / (a * a + b * b), -a / (a * a + b * b))],
}
OWN = {  # what a formula does itself
    **{op: {"slope_from_result"} for op in ("tanh", "expm1", "log_sigmoid")},
    **{op: {"early_overflow"} for op in ("silu", "softplus", "swiglu")},
    **{op: {"argument_reduction"} for op in ("sin", "cos", "tan")},
    "sigmoid": {"slope_from_result", "early_overflow"}, "gelu": {"erf_cancellation"},
    "asin": {"one_minus_square"}, "erf": {"rounded_exponent"}, "hypot": {"unscaled_squares"},
}  # fmt: skip
SIZES = {
    "like 1": lambda rng, n: rng.standard_normal(n),
    "up to 100": lambda rng, n: rng.uniform(-100, 100, n),
    "any": lambda rng, n: rng.choice([-1, 1], n) * 10 ** rng.uniform(-30, 30, n),
}


KERNELS_BY_OP: dict[str, list[tuple[str, Callable[..., object]]]] = {}
for name, kernel in {**vars(activations), **vars(functions), **vars(gelu)}.items():
    if name.startswith(("whole_", "erf_")):
        op = max((op for op in registry.ops() if name.endswith(f"_{op}")), key=len)
        KERNELS_BY_OP.setdefault(op, []).append(("forward", kernel))
for op, slopes in SLOPES.items():
    KERNELS_BY_OP[op] += [("backward", slope) for slope in slopes]


@pytest.mark.parametrize("op", one_in(2, KERNELS_BY_OP))
def test_a_right_kernel_has_no_fault_but_its_formula_s_own(op: str) -> None:
    for number, (direction, kernel) in enumerate(KERNELS_BY_OP[op]):
        for draw in range(HUNT):
            rng = np.random.default_rng([*op.encode(), number, draw])
            size, n = str(rng.choice(list(SIZES))), int(rng.choice([20, 60, 300]))
            dtype = (np.float32, np.float32, np.float16, ml_dtypes.bfloat16)[rng.integers(4)]
            with np.errstate(all="ignore"):
                takes = registry.get(op).takes(direction)
                inputs = {x: SIZES[size](rng, n).astype(dtype) for x in takes}
                wide = [array.astype("f4") for array in inputs.values()]
                if direction == "backward":
                    results = wide[0] * np.atleast_2d(kernel(*wide[1:]))
                else:
                    results = [kernel(*wide)]
            outputs = tuple(y.astype(dtype) for y in results)
            found = explain(op, inputs, outputs, direction=direction)
            sure = {c.cause for c in found.candidates if c.confidence in ("proven", "matched")}
            place = direction, number, draw, size, n, np.dtype(dtype).name, found.verdict
            assert sure <= {"summation_order", *OWN.get(op, ())}, place
