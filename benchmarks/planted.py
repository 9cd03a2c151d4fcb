"""Kernels for `diagnosis.py`: right ones of many kinds, and the same with one fault each.

Every sum runs in a random number of vector lanes, so that no model of the package has a kernel's
bits by construction. Formats narrower than float32 are computed in float32 and rounded at the end.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from refkernels import registry
from refkernels.arithmetic import formats

Array = np.ndarray
Arrays = dict[str, Array]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True)
class Planted:
    """A question and a kernel's answer. `cause`: the fault, None for a right kernel; `also`: other
    causes that may be named instead."""

    cause: str | None
    op: str
    inputs: Arrays
    outputs: Arrays
    params: dict[str, Any] = field(default_factory=dict)
    direction: str = "forward"
    dtype: str = "float32"
    also: tuple[str, ...] = ()


def working(dtype: Any) -> Any:
    """The precision that a format is computed in."""
    return np.float64 if dtype == np.float64 else np.float32


class Kernel:
    """Sums in a random number of lanes; elementwise errors of at most one ulp."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.lanes = int(rng.choice([1, 2, 3, 4, 5, 8, 16, 32]))
        self.fold = bool(rng.integers(2))

    def sum(self, values: Array, axis: int = -1) -> Array:
        """The sum over one axis, kept as length 1, in the dtype of the values."""
        terms = np.moveaxis(values, axis, 0)
        parts = [
            np.add.accumulate(terms[lane :: self.lanes], axis=0, dtype=terms.dtype)[-1]
            for lane in range(min(self.lanes, len(terms)))
        ]
        while len(parts) > 1 and self.fold:
            half = (len(parts) + 1) // 2
            upper = parts[half:]
            parts = [
                low + upper[i] if i < len(upper) else low for i, low in enumerate(parts[:half])
            ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return np.expand_dims(total, axis)

    def product(self, a: Array, b: Array, start: Array | None = None) -> Array:
        """A B, summed in lanes; `start`: what the first lane starts at."""
        terms = a[:, :, None] * b[None, :, :]
        if start is not None:
            first = np.broadcast_to(start, (len(a), 1, b.shape[1]))
            terms = np.concatenate([first, terms], axis=1)
        return self.sum(terms, 1)[:, 0]

    def linear(self, inputs: Arrays, bias: Array | None = None, first: bool = False) -> Array:
        x, weight = inputs["x"], inputs["weight"]
        kind = working(x.dtype)
        added = (inputs["bias"] if bias is None else bias).astype(kind)
        if first:
            return self.product(x.astype(kind), weight.T.astype(kind), added).astype(x.dtype)
        return (self.product(x.astype(kind), weight.T.astype(kind)) + added).astype(x.dtype)

    def linear_backward(self, inputs: Arrays) -> Arrays:
        dy, x, weight = (
            inputs[name].astype(working(inputs["x"].dtype)) for name in ("dy", "x", "weight")
        )
        gradients = {
            "dx": self.product(dy, weight),
            "dweight": self.product(np.ascontiguousarray(dy.T), x),
            "dbias": self.sum(dy, 0)[0],
        }
        return {name: array.astype(inputs["x"].dtype) for name, array in gradients.items()}

    def statistics(self, x: Array, variance: str, eps: float, ddof: int = 0) -> tuple[Array, Array]:
        """mean and rstd, (rows, 1), in the dtype of x."""
        kind = x.dtype.type
        n = x.shape[1]
        mean = self.sum(x) / kind(n)
        if variance == "naive":
            var = np.maximum(self.sum(x * x) / kind(n) - mean * mean, 0)
        elif variance == "welford":
            mean, var = welford(x)
        else:
            var = self.sum(np.square(x - mean)) / kind(n - ddof)
            if variance == "corrected":
                var = var - np.square(self.sum(x - mean) / kind(n))
        return mean, kind(1) / np.sqrt(var + kind(eps))

    def layernorm(self, inputs: Arrays, eps: float = 1e-5, **how: Any) -> Arrays:
        """`variance`, `form`, `ddof`, `statistics` (a dtype), `stored` (a dtype)."""
        x = inputs["x"]
        kind = how.get("working", working(x.dtype))
        wide = x.astype(kind)
        mean, rstd = self.statistics(
            wide.astype(how.get("statistics", kind)),
            how.get("variance", "two_pass"),
            0.0 if how.get("outside") else how.get("eps", eps),
            how.get("ddof", 0),
        )
        mean, rstd = mean.astype(kind), rstd.astype(kind)
        if "stored" in how:
            mean, rstd = (v.astype(how["stored"]).astype(kind) for v in (mean, rstd))
        if how.get("outside"):
            rstd = kind(1) / (kind(1) / rstd + kind(eps))
        form = how.get("form", "centred")
        weight, bias = inputs["weight"].astype(kind), inputs["bias"].astype(kind)
        xhat = wide * rstd - rstd * mean if form == "folded" else (wide - mean) * rstd
        if "dy" not in inputs:
            y = xhat * weight + bias
            return {"y": y.astype(x.dtype)}
        dy = inputs["dy"].astype(kind)
        t, n = dy * weight, kind(x.shape[1])
        inner = t - self.sum(t) / n - xhat * (self.sum(t * xhat) / n)
        dx = rstd * (t if how.get("constant") else inner)
        gradients = {"dx": dx, "dweight": self.sum(dy * xhat, 0)[0], "dbias": self.sum(dy, 0)[0]}
        return {name: array.astype(x.dtype) for name, array in gradients.items()}

    def function(self, op: str, x: Array) -> Array:
        """Within an ulp of the function: the float64 value rounded, some values one ulp off;
        formats of 16 bits as in a library that works in float32."""
        if x.dtype.itemsize == 2:
            return self.function(op, x.astype(np.float32)).astype(x.dtype)
        right = exact(op, x)
        off = self.rng.integers(-1, 2, x.shape) if x.dtype != np.float64 else 0
        keep = ~np.isfinite(right) | (right == 0)
        bits = formats.of(right).bits_dtype
        moved = (right.view(bits) + np.where(keep, 0, off).astype(bits)).view(right.dtype)
        for invariant in registry.get(op).invariants:  # a right kernel satisfies them
            if invariant.direction == "forward":
                moved = np.where(invariant.violated(moved, {"x": x}, {}), right, moved)
        return np.where(np.isfinite(moved), moved, right)


def welford(x: Array) -> tuple[Array, Array]:
    """Mean and variance by Welford's recurrence, row by row, in order."""
    mean = np.zeros((len(x), 1), x.dtype)
    total = np.zeros_like(mean)
    for k in range(x.shape[1]):
        delta = x[:, k : k + 1] - mean
        mean = mean + delta / x.dtype.type(k + 1)
        total = total + delta * (x[:, k : k + 1] - mean)
    return mean, total / x.dtype.type(x.shape[1])


_ERF = np.vectorize(math.erf, otypes=[np.float64])
_ERFC = np.vectorize(math.erfc, otypes=[np.float64])
_ROOT = np.sqrt(2 / np.longdouble(math.pi))


def _upper(z: Array) -> Array:
    """erfc of a long double: that of its float64, and the slope there times the remainder."""
    near = z.astype(np.float64)
    return _ERFC(near) - 2.0 / math.sqrt(math.pi) * np.exp(-near * near) * (z - near)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "exp": np.exp,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "atan": np.arctan,
    "erf": _ERF,
    "erfc": _ERFC,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1.0) / (1.0 + np.exp(-np.abs(x))),
    "gelu": lambda x: 0.5 * x * _upper(-x * np.sqrt(np.longdouble(0.5))),
    "gelu_tanh": lambda x: x / (1.0 + np.exp(-2.0 * _ROOT * (x + 0.044715 * x**3))),
}


def exact(op: str, x: Array) -> Array:
    """The function in more than float64 where NumPy has it, rounded to the format of x."""
    with np.errstate(all="ignore"):
        return FUNCTIONS[op](x.astype(np.longdouble)).astype(np.float64).astype(x.dtype)
