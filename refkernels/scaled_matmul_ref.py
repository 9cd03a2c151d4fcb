"""Products of operands of 8 and 16 bits with scales, certified.

    c_ij = scale_a_i scale_b_j (sum over k of a_ik b_kj) + bias_j

a and b are float8 (e4m3fn, e5m2), int8, or numbers of any format. Their values are taken as exact:
the answer is the product of these operands, not of the numbers from which they were quantized. c
may have any format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import LOW
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.op import Case, Direction
from refkernels.ops import Apart, Fault, Prepared, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.letters import Signature

__all__ = ["OPS", "scaled_matmul"]
Array = npt.NDArray[Any]
_SIGNATURE = Signature.parse(
    "a[... k], b[k n], scale_a[...], scale_b[n], bias[n]?, row[...]:int -> c[... n]"
)
_E4M3, _E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)


@dataclass(frozen=True, eq=False)
class _Operands:
    """The caller's arrays, a with two axes, and their values as wrong kernels read them."""

    a: Array
    b: Array
    scale_a: Array
    scale_b: Array

    @property
    def one_format(self) -> bool:
        return {self.a.dtype, self.b.dtype} <= {_E4M3, _E5M2}

    def misread(self) -> tuple[Array, Array]:
        """Each float8 read as the other float8."""
        other_float8 = {_E4M3: _E5M2, _E5M2: _E4M3}
        reinterpreted = (operand.view(other_float8[operand.dtype]) for operand in (self.a, self.b))
        return tuple(map(_exact, reinterpreted))  # type: ignore[return-value]

    def saturated(self) -> tuple[Array, Array]:
        """NaN and infinity as the largest number of their sign, like a saturating conversion."""
        return tuple(map(_saturated, (self.a, self.b)))  # type: ignore[return-value]

    def wrapped(self) -> Array:
        """The sums of products of int8, wrapped in int16."""
        return (self.a.astype(np.int64) @ self.b.astype(np.int64)).astype(np.int16)


def _exact(array: Array) -> Array:
    """8-bit numbers as float16, which represents them exactly; other arrays unchanged."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float16) if array.dtype in LOW else array


def _saturated(array: Array) -> Array:
    wide = _exact(array)
    if array.dtype not in (_E4M3, _E5M2):
        return wide
    largest = float(ml_dtypes.finfo(array.dtype).max)
    sign = np.where(array.view(np.uint8) >> 7, -largest, largest)
    return np.where(np.isfinite(wide), wide, sign).astype(np.float16)


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """One scale for every row of a and every column of b."""
    a, b, scale_a, scale_b = (inputs[name] for name in ("a", "b", "scale_a", "scale_b"))
    if a.ndim < 1 or b.ndim != 2 or a.shape[-1] != b.shape[0]:
        raise ValueError(f"a has shape {a.shape} and b {b.shape}, not (..., K) and (K, N).")
    columns = b.shape[1:]
    if scale_a.shape not in ((), a.shape[:-1]):
        raise ValueError(
            f"scale_a has shape {scale_a.shape}: it must be a number, or {a.shape[:-1]}, a's rows."
        )
    if scale_b.shape not in ((), columns):
        raise ValueError(f"scale_b has shape {scale_b.shape}: it must be a number, or {columns}.")
    rows = int(np.prod(a.shape[:-1]))
    arrays = {
        **inputs,
        "a": _exact(a),
        "b": _exact(b),
        "scale_a": np.broadcast_to(scale_a, a.shape[:-1]),
        "scale_b": np.broadcast_to(scale_b, columns),
        "row": np.arange(rows).reshape(a.shape[:-1]),
    }
    flat = np.broadcast_to(scale_a, a.shape[:-1]).reshape(rows)
    operands = _Operands(a.reshape(rows, a.shape[-1]), b, flat, arrays["scale_b"])
    return Prepared(arrays, {"operands": operands}, signature=_SIGNATURE)


def _product(xp: Any, a: Any, b: Any) -> Any:
    """The product without scales, (rows, n)."""
    product = xp.matmul(xp.reshape(a, (1, *a.shape)), xp.reshape(b, (1, *b.shape[-2:])))
    return xp.reshape(product, (a.shape[0], b.shape[-1]))


def _column(xp: Any, scale_a: Any) -> Any:
    return xp.reshape(scale_a, (scale_a.shape[0], 1))


def _wide(xp: Any, scale_b: Any) -> Any:
    return xp.reshape(scale_b, (1, 1, scale_b.shape[-1]))


def _plus(y: Any, bias: Any) -> Any:
    return y if bias is None else y + bias


def _after(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, **_: Any
) -> Any:  # fmt: skip
    """The scales applied to the sum, one after the other or their product at once."""
    total, rows = _product(xp, a, b), _column(xp, scale_a)
    by_rows = xp.either(total * rows * scale_b, total * scale_b * rows)
    return _plus(xp.either(by_rows, total * (rows * scale_b)), bias)


def _before(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, **_: Any
) -> Any:  # fmt: skip
    """The scales applied to the operands."""
    return _plus(_product(xp, a * _column(xp, scale_a), b * _wide(xp, scale_b)), bias)


def _rounded(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, **_: Any
) -> Any:  # fmt: skip
    """The scaled operands stored in c's format."""
    left, right = xp.store(a * _column(xp, scale_a)), xp.store(b * _wide(xp, scale_b))
    return _plus(_product(xp, left, right), bias)


def _narrow(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, **_: Any
) -> Any:  # fmt: skip
    """Every partial sum stored in c's format."""
    total = xp.number(0)
    for k in range(a.shape[-1]):
        index = np.array([k])
        right = xp.reshape(xp.take(b, index, axis=-2), (1, b.shape[-1]))
        total = xp.store(total + xp.take(a, index, axis=-1) * right)
    return _plus(total * _column(xp, scale_a) * scale_b, bias)


def _inverted(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, **_: Any
) -> Any:  # fmt: skip
    return _plus(_product(xp, a, b) / _column(xp, scale_a) / scale_b, bias)


def _swapped(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, row: Any, operands: _Operands,
    bias: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """a's scales along the columns and b's along the rows, if there are equally many."""
    if operands.scale_a.shape != operands.scale_b.shape:
        return _after(xp, a, b, scale_a, scale_b, bias)
    rows, columns = xp.array(operands.scale_b[row][:, None]), xp.array(operands.scale_a[None])
    return _plus(_product(xp, a, b) * rows * columns, bias)


def _of_others(read: str) -> Any:
    """A fault that reads wrong values from float8 operands."""

    def formula(
        xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, row: Any, operands: _Operands,
        bias: Any = None, **_: Any,
    ) -> Any:  # fmt: skip
        if operands.one_format:
            left, right = getattr(operands, read)()
            a, b = xp.array(left[row]), xp.array(right)
        return _after(xp, a, b, scale_a, scale_b, bias)

    return formula


def _wrapped(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, row: Any, operands: _Operands,
    bias: Any = None, **_: Any,
) -> Any:  # fmt: skip
    if {operands.a.dtype, operands.b.dtype} != {np.dtype(np.int8)}:
        return _after(xp, a, b, scale_a, scale_b, bias)
    total = xp.array(operands.wrapped()[row].astype(np.float32))
    return _plus(total * _column(xp, scale_a) * scale_b, bias)


_FAULTS = (
    Fault("scales_inverted", _inverted),
    Fault("scales_swapped", _swapped),
    Fault("float8_misread", _of_others("misread")),
    Fault("nan_saturated", _of_others("saturated")),
    Fault("int16_wrapped", _wrapped),
    Fault("narrow_accumulator", _narrow, unstable=True),
    Fault("scaled_operands_rounded", _rounded, unstable=True),
)


def cases() -> list[Case]:
    """All cases. Appended, never changed."""

    def make(regime: str, parameters: Any, *shape: int, **how: Any) -> Case:
        arrays = partial(_drawn, shape or (6, 48, 5), **how)
        return case("scaled_matmul", regime, parameters, arrays, directions=("forward",))

    low = ("float8_e4m3fn", "float8_e5m2", "int8", "bfloat16", "float16")
    return [
        *(make("tensor", {"operands": operand}, operands=operand) for operand in low),
        *(make("row", {"operands": operand}, operands=operand, rows=True) for operand in low),
        *(make("products", {"products": k}, 4, k, 3) for k in (16, 64, 256, 1024)),
        *(
            make("products", {"products": k, "of": "int8"}, 4, k, 3, operands="int8")
            for k in (256, 4096)
        ),
        make("square", {"n": 6}, 6, 32, 6, rows=True),
        make("bias", {"scale": 1000}, bias=1000.0, rows=True),
        make("bias", {"of": "int8"}, operands="int8", bias=1.0),
        make("cancelling", {"pairs": 24}, cancelling=True),
        make("range", {"numbers": "all"}, operands="float8_e5m2", every=True),
        make("range", {"of": "int8"}, operands="int8", every=True, rows=True),
        make("specials", {"of": "e4m3"}, specials=True),
        make("specials", {"of": "e5m2"}, operands="float8_e5m2", specials=True),
        make("invariance", {"rows": 37}, 37, 48, 5, rows=True),
    ]


def _drawn(
    shape: tuple[int, ...], rng: np.random.Generator, dtype: str, *,
    operands: str = "float8_e4m3fn", rows: bool = False, bias: float = 0.0,
    cancelling: bool = False, every: bool = False, specials: bool = False,
) -> Arrays:  # fmt: skip
    m, k, n = shape
    kind = np.dtype(getattr(ml_dtypes, operands, operands))
    a, b = (_low(rng, shape, kind, every) for shape in ((m, k), (k, n)))
    if cancelling:
        a[:, 1::2], b[1::2] = -a[:, ::2], b[::2]
        a[:, 0] = _low(rng, (m,), kind, every)
    if specials:
        a[1, 2], b[3, 1] = np.nan, -np.nan if kind == _E4M3 else np.inf
    scales = rng.uniform(0.001, 0.1, m if rows else ()), rng.uniform(0.001, 0.1, n if rows else ())
    arrays = {"a": a, "b": b, "scale_a": np.asarray(scales[0]), "scale_b": np.asarray(scales[1])}
    if bias:
        arrays["bias"] = bias * rng.standard_normal(n)
    return arrays


def _low(rng: np.random.Generator, shape: tuple[int, ...], kind: Any, every: bool) -> Array:
    if kind == np.int8:
        return rng.integers(-128 if every else -127, 128, shape).astype(np.int8)
    if every:
        bits = rng.integers(0, 256, shape).astype(np.uint8).view(kind)
        return np.where(np.isfinite(bits), bits, np.zeros((), kind)).astype(kind)
    return rng.standard_normal(shape).astype(kind)


OPS = (
    formula_op(
        "scaled_matmul",
        "a[... k]:low, b[k n]:low, scale_a[...], scale_b[n], bias[n]? -> c[... n]",
        forms={"after": Apart((_after,)), "before": Apart((_before,))},
        gradients=(),
        prepare=_prepare,
        faults=_FAULTS,
        cases=cases,
    ),
)


def scaled_matmul(
    a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, *, certify: Certify = "enclosure"
) -> Enclosure:
    """c_ij = scale_a_i scale_b_j (sum over k of a_ik b_kj) + bias_j, for the operands as stored.

    a, b        (..., K) and (K, N): float8_e4m3fn and float8_e5m2 (of `ml_dtypes`, or torch's),
                int8, float16, bfloat16, float32, float64; the two may differ
    scale_a     one number, or one per row of a; float16, bfloat16, float32 or float64
    scale_b     one number, or one per column of b
    bias        (N,)

    A float8 NaN is NaN, and so is inf - inf; e4m3fn has no infinity. The bound of a float32 c is
    about (K + 3) 2^-24 |scale_a_i scale_b_j| sum |a b|, with sums in any order. It is proven for
    scales applied to the sum, in either order or as their product, and for scales applied to the
    operands. It covers an integer accumulator that is rounded once.

    Raises TypeError for other dtypes, ValueError for shapes that do not fit.
    Source: Micikevicius et al. (2022), "FP8 formats for deep learning", arXiv:2209.05433.
    """
    return OPS[0].ask(locals())
