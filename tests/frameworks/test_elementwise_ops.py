"""Each elementwise op of each real framework is the function of that name, and so is its gradient.

A few inputs, against mpmath: that a wrong function, form or order of arguments is seen, not how
accurate it is (measuring that is what the package is for).
"""

import types
from collections.abc import Callable

import ml_dtypes
import mpmath
import numpy as np
import pytest

from refkernels.frameworks import catalog
from refkernels.frameworks.gateway import Session

NAMES = ("numpy", "libm", "torch", "paddle", "oneflow", "mindspore")
FUNCTIONS = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinpi": mpmath.sinpi,
    "cospi": mpmath.cospi,
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "log1p": mpmath.log1p,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "mish": lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))),
    "hardsigmoid": lambda x: min(max(x + 3, 0), 6) / 6,
    "elu": lambda x: x if x > 0 else mpmath.expm1(x),
    "selu": lambda x: (
        mpmath.mpf("1.0507009873554805") * (x if x > 0 else 1.6732632423543772 * mpmath.expm1(x))
    ),
    "softsign": lambda x: x / (1 + abs(x)),
    "log_sigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "gelu": lambda x: x * mpmath.ncdf(x),
    "gelu_tanh": lambda x: (
        x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)))
    ),
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
POINTS = np.array([[0.0625, 0.296875], [0.5, 0.8125]])  # in every format, and of no op's edge
SLOPPY = 2.0**-18
"""Relative to the larger of 1 and the value: far below any other function's distance there (GELU's
two forms are 2e-4 apart), and above what float32 arithmetic inside a float64 op costs."""


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_op_is_the_function_of_that_name(
    name: str, op: str, session_for: Callable[[str], Session]
) -> None:
    session = session_for(name)
    if (lists := session.info["capabilities"]["cpu"].get(op)) is None:
        assert session.run(op, "forward", {"x": POINTS}).status == "unsupported"
        return
    function, tried = FUNCTIONS[op], 0
    with mpmath.workdps(30):
        values = {
            "y": [function(mpmath.mpf(x)) for x in POINTS.flat],
            "dx": [2 * mpmath.diff(function, mpmath.mpf(x)) for x in POINTS.flat],
        }
    for direction, output in (("forward", "y"), ("backward", "dx")):
        exact = np.array(values[output], float).reshape(POINTS.shape)
        for dtype, reason in lists[direction].items():
            kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
            inputs = {"x": POINTS.astype(kind)}
            if direction == "backward":
                inputs["dy"] = np.full(POINTS.shape, 2.0).astype(kind)
            reply = session.run(op, direction, inputs)
            if reason is not None:
                assert (reply.status, reason in str(reply.reason)) == ("unsupported", True)
                continue
            assert reply.ok, reply.reason
            assert reply.outputs[output].dtype == kind
            error = np.abs(reply.outputs[output].astype(float) - exact)
            u = max(SLOPPY, 8 * float(ml_dtypes.finfo(kind).eps))
            assert np.all(error <= u * np.maximum(1.0, np.abs(exact))), dtype
            tried += 1
    assert tried or all(reason for reason in lists["forward"].values())


def test_libm_answers_a_large_array_quickly(session_for: Callable[[str], Session]) -> None:
    x = np.linspace(-3, 3, 1 << 20, dtype=np.float32)
    session = session_for("libm")
    first = session.run("sin", "forward", {"x": x})  # compiles the loop
    again = session.run("cos", "forward", {"x": x})
    assert first.ok, first.reason
    assert again.ok, again.reason
    assert again.seconds is not None
    assert again.seconds < 0.5, "ctypes' own calls would take a second"
    assert np.max(np.abs(again.outputs["y"] - np.cos(x.astype(np.float64)))) < 2.0**-23


def test_libm_without_numba_gives_the_same_bits(session_for: Callable[[str], Session]) -> None:
    adapter = types.ModuleType("adapter")
    source = catalog.get("libm").framework.source()
    exec(compile(source.replace("import numba", "raise ImportError"), "adapter", "exec"),
         adapter.__dict__)  # fmt: skip
    assert adapter.numba is None
    for dtype in (np.float32, np.float64):
        x = np.array([[0.5, -1.25, np.inf], [-0.0, 1e-30, np.nan]], dtype)
        plain = adapter.forward("expm1", {"x": x}, {})["y"]
        compiled = session_for("libm").run("expm1", "forward", {"x": x}).outputs["y"]
        assert plain.dtype == dtype
        np.testing.assert_array_equal(plain, compiled)
        assert np.signbit(plain[1, 0])
