"""Products of operands of 4 to 16 bits with scales, certified.

    c_ij = scale_a_i scale_b_j (sum over k of a_ik b_kj) + bias_j
    c_ij = sum over g of scale_a_ig scale_b_gj (sum over k in group g of a_ik b_kj) + bias_j

with b_kj - zero_b_gj for b_kj where there are zero points. a and b are float8, float6, float4,
int8, int4, or numbers of any format. Their values are taken as exact: the answer is the product of
these operands, not of the numbers from which they were quantized. c may have any format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import LOW
from refkernels.op import Case, Direction
from refkernels.ops import Fault, PerOutput, Prepared, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.letters import Signature
from refkernels.ops.public import enclosure_of, public_names

Array = npt.NDArray[Any]
_BY_GROUP = Signature.parse(
    "a[... k], b[k n], scale_a[... g], scale_b[g n], bias[n]?, zero_b[g n]?:int, row[...]:int "
    "-> c[... n]"
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


def _exact(array: Array) -> Array:
    """Numbers of at most 8 bits as float32, which represents them exactly; others unchanged."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float32) if array.dtype in LOW else array


def _saturated(array: Array) -> Array:
    wide = _exact(array)
    if array.dtype not in (_E4M3, _E5M2):
        return wide
    largest = float(ml_dtypes.finfo(array.dtype).max)
    sign = np.where(array.view(np.uint8) >> 7, -largest, largest)
    return np.where(np.isfinite(wide), wide, sign).astype(np.float32)


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """A scale for every group of every row of a and every column of b; one group where the scales
    have no axis of groups."""
    a, b = inputs["a"], inputs["b"]
    scale_a, scale_b = (_exact(inputs[name]) for name in ("scale_a", "scale_b"))
    if a.ndim < 1 or b.ndim != 2 or a.shape[-1] != b.shape[0]:
        raise ValueError(f"a has shape {a.shape} and b {b.shape}, not (..., K) and (K, N).")
    rows, columns, zero_b = a.shape[:-1], b.shape[1:], inputs.get("zero_b")
    if zero_b is not None and zero_b.shape != scale_b.shape:
        raise ValueError(
            f"zero_b has shape {zero_b.shape}: it must be {scale_b.shape}, as scale_b's."
        )
    groups = _groups(a, b, scale_a, scale_b)
    for name, scale, of, kept in (("a", scale_a, a, rows), ("b", scale_b, b, columns)):
        if scale.shape not in ((), kept) and not (groups and scale.ndim == of.ndim):
            raise ValueError(
                f"scale_{name} has shape {scale.shape}: it must be a number, or {kept}, or have an "
                "axis more, of groups."
            )

    def by_group(array: Array, kept: tuple[int, ...], axis: int) -> Array:
        if array.ndim != len(kept) + 1:
            array = np.expand_dims(np.broadcast_to(array, kept), axis)
        wide = [*kept]
        wide.insert(axis % (len(kept) + 1), max(groups, 1))
        return np.broadcast_to(array, wide)

    number = int(np.prod(rows))
    arrays = {
        **inputs,
        "a": _exact(a),
        "b": _exact(b),
        "scale_a": by_group(scale_a, rows, -1),
        "scale_b": by_group(scale_b, columns, 0),
        "zero_b": None if zero_b is None else by_group(zero_b, columns, 0),
        "row": np.arange(number).reshape(rows),
    }
    operands = (
        _Operands(
            a.reshape(number, a.shape[-1]),
            b,
            np.broadcast_to(scale_a, rows).reshape(number),
            np.broadcast_to(scale_b, columns),
        )
        if not groups and zero_b is None
        else None
    )
    return Prepared(arrays, {"operands": operands, "grouped": groups > 0}, signature=_BY_GROUP)


def _groups(a: Array, b: Array, scale_a: Array, scale_b: Array) -> int:
    """The number of groups of terms with a scale of their own; 0 where each row has one."""
    found = {
        scale.shape[axis]
        for scale, of, axis in ((scale_a, a, -1), (scale_b, b, 0))
        if scale.ndim == of.ndim
        and np.delete(scale.shape, axis).tolist() == np.delete(of.shape, axis).tolist()
    }
    if not found:
        return 0
    groups = found.pop()
    if found or not groups or a.shape[-1] % groups:
        raise ValueError(
            f"scale_a has shape {scale_a.shape}, scale_b {scale_b.shape} and b {b.shape}: they "
            "must have equally many groups, which divide b's rows."
        )
    return int(groups)


def _centred(formula: Any) -> Any:
    """The formula of operands b without their zero points."""

    def centred(
        xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, zero_b: Any = None, bias: Any = None,
        **rest: Any,
    ) -> Any:  # fmt: skip
        if zero_b is not None:
            parts = _by_group(xp, b, scale_b) - _zeros(xp, zero_b)
            b = xp.reshape(parts, (1, parts.shape[0] * parts.shape[1], parts.shape[2]))
        return formula(xp, a=a, b=b, scale_a=scale_a, scale_b=scale_b, bias=bias, **rest)

    return centred


def _by_group(xp: Any, b: Any, scale_b: Any) -> Any:
    """(groups, k / groups, n)."""
    groups = scale_b.shape[-2]
    return xp.reshape(b, (groups, b.shape[-2] // groups, b.shape[-1]))


def _zeros(xp: Any, zero_b: Any) -> Any:
    groups, n = zero_b.shape[-2:]
    return xp.reshape(xp.array(np.asarray(zero_b, np.float64)), (groups, 1, n))


def _offset_after(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, zero_b: Any = None, bias: Any = None,
    **_: Any,
) -> Any:  # fmt: skip
    """The products with the zero points subtracted from those with b."""
    y = _after(xp, a, b, scale_a, scale_b)
    if zero_b is not None:
        zeros = xp.broadcast(_zeros(xp, zero_b), _by_group(xp, b, scale_b).shape)
        y = y - _after(xp, a, xp.reshape(zeros, (1, *b.shape[-2:])), scale_a, scale_b)
    return _plus(y, bias)


def _product(xp: Any, a: Any, b: Any) -> Any:
    """The product without scales, (rows, n)."""
    product = xp.matmul(xp.reshape(a, (1, *a.shape)), xp.reshape(b, (1, *b.shape[-2:])))
    return xp.reshape(product, (a.shape[0], b.shape[-1]))


def _plus(y: Any, bias: Any) -> Any:
    return y if bias is None else y + bias


def _of_groups(xp: Any, a: Any, scale_a: Any, scale_b: Any) -> tuple[Any, Any, Any]:
    """a, (groups, rows, k / groups), and the scales of its rows and of b's columns beside it."""
    (rows, k), groups, n = a.shape, scale_a.shape[-1], scale_b.shape[-1]
    left = xp.transpose(xp.reshape(a, (rows, groups, k // groups)), (1, 0, 2))
    of_rows = xp.reshape(xp.transpose(scale_a, (1, 0)), (groups, rows, 1))
    return left, of_rows, xp.reshape(scale_b, (groups, 1, n))


def _after(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, **_: Any
) -> Any:  # fmt: skip
    """The scales applied to the sum of each group, one after the other or their product at once."""
    left, of_rows, of_columns = _of_groups(xp, a, scale_a, scale_b)
    total = xp.matmul(left, _by_group(xp, b, scale_b))
    one_by_one = xp.either(total * of_rows * of_columns, total * of_columns * of_rows)
    return _summed(xp, xp.either(one_by_one, total * (of_rows * of_columns)), bias)


def _summed(xp: Any, scaled: Any, bias: Any) -> Any:
    """The sum over the groups."""
    return _plus(xp.reshape(xp.sum(scaled, axis=0), scaled.shape[1:]), bias)


def _scaled(xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any) -> tuple[Any, Any]:
    """The operands times their scales."""
    left, of_rows, of_columns = _of_groups(xp, a, scale_a, scale_b)
    right = _by_group(xp, b, scale_b) * of_columns
    left = xp.transpose(left * of_rows, (1, 0, 2))
    return xp.reshape(left, a.shape), xp.reshape(right, (1, *b.shape[-2:]))


def _before(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, keep: Any = lambda a: a,
    **_: Any,
) -> Any:  # fmt: skip
    """The scales applied to the operands, to which `keep` is applied."""
    return _plus(_product(xp, *map(keep, _scaled(xp, a, b, scale_a, scale_b))), bias)


def _kept(xp: Any, grouped: bool, **arguments: Any) -> Any:
    """Operands with scales of groups stored in c's format, as of weights that are dequantized."""
    return _before(xp, **arguments, **({"keep": xp.store} if grouped else {}))


def _first_group(xp: Any, scale_a: Any, scale_b: Any, **arguments: Any) -> Any:
    """The first group's scales for all."""
    first = np.zeros(scale_a.shape[-1], int)
    scale_a, scale_b = xp.take(scale_a, first, axis=-1), xp.take(scale_b, first, axis=-2)
    return _after(xp, scale_a=scale_a, scale_b=scale_b, **arguments)


def _rounded(xp: Any, grouped: bool, **arguments: Any) -> Any:
    """The scaled operands stored in c's format."""
    return _after(xp, **arguments) if grouped else _before(xp, **arguments, keep=xp.store)


def _narrow(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, grouped: bool, bias: Any = None, **_: Any
) -> Any:
    """Every partial sum stored in c's format."""
    if grouped:
        return _after(xp, a, b, scale_a, scale_b, bias)
    total = xp.number(0)
    for k in range(a.shape[-1]):
        index = np.array([k])
        right = xp.reshape(xp.take(b, index, axis=-2), (1, b.shape[-1]))
        total = xp.store(total + xp.take(a, index, axis=-1) * right)
    return _plus(total * scale_a * xp.reshape(scale_b, (1, b.shape[-1])), bias)


def _inverted(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, **_: Any
) -> Any:
    left, of_rows, of_columns = _of_groups(xp, a, scale_a, scale_b)
    total = xp.matmul(left, _by_group(xp, b, scale_b))
    return _summed(xp, total / of_rows / of_columns, bias)


def _swapped(
    xp: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, row: Any, operands: _Operands,
    bias: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """a's scales along the columns and b's along the rows, if there are equally many."""
    if operands is None or operands.scale_a.shape != operands.scale_b.shape:
        return _after(xp, a, b, scale_a, scale_b, bias)
    rows, columns = xp.array(operands.scale_b[row][:, None]), xp.array(operands.scale_a[None])
    return _plus(_product(xp, a, b) * rows * columns, bias)


def _of_others(read: str) -> Any:
    """A fault that reads wrong values from float8 operands."""

    def formula(xp: Any, row: Any, operands: _Operands, **arguments: Any) -> Any:
        if operands is not None and operands.one_format:
            left, right = getattr(operands, read)()
            arguments |= {"a": xp.array(left[row]), "b": xp.array(right[None])}
        return _after(xp, **arguments)

    return formula


_FORMULAS: dict[str, Any] = {
    "scales_inverted": _inverted,
    "scales_swapped": _swapped,
    "first_group_scale": _first_group,
    "float8_misread": _of_others("misread"),
    "nan_saturated": _of_others("saturated"),
}
_UNSTABLE = {"narrow_accumulator": _narrow, "scaled_operands_rounded": _rounded}
_FAULTS = (
    *(Fault(cause, _centred(formula)) for cause, formula in _FORMULAS.items()),
    *(Fault(cause, _centred(formula), unstable=True) for cause, formula in _UNSTABLE.items()),
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
        make("groups", {"groups": 3, "of": "e4m3"}, 6, 48, 5, groups=3),
        make("groups", {"groups": 4, "of": "e2m1"}, 6, 64, 5, operands="float4_e2m1fn", groups=4),
        make("groups", {"groups": 2, "of": "int4"}, 5, 64, 7, operands="int4", groups=2),
        make("zero_points", {"groups": 4, "of": "uint4"}, 5, 64, 7, operands="uint4", groups=4),
        make("zero_points", {"of": "uint8"}, 5, 48, 7, operands="uint8", rows=True),
    ]


def _drawn(
    shape: tuple[int, ...], rng: np.random.Generator, dtype: str, *,
    operands: str = "float8_e4m3fn", rows: bool = False, bias: float = 0.0,
    cancelling: bool = False, every: bool = False, specials: bool = False, groups: int = 0,
) -> Arrays:  # fmt: skip
    m, k, n = shape
    kind = np.dtype(getattr(ml_dtypes, operands, operands))
    a, b = (_low(rng, shape, kind, every) for shape in ((m, k), (k, n)))
    if cancelling:
        a[:, 1::2], b[1::2] = -a[:, ::2], b[::2]
        a[:, 0] = _low(rng, (m,), kind, every)
    if specials:
        a[1, 2], b[3, 1] = np.nan, -np.nan if kind == _E4M3 else np.inf
    shapes = ((m, groups), (groups, n)) if groups else (m, n) if rows else ((), ())
    scales = [rng.uniform(0.001, 0.1, size) for size in shapes]
    arrays = {"a": a, "b": b, "scale_a": np.asarray(scales[0]), "scale_b": np.asarray(scales[1])}
    if kind.name.startswith("uint"):
        arrays["a"] = rng.standard_normal((m, k))
        arrays["zero_b"] = rng.integers(0, 16 if kind.name == "uint4" else 256, shapes[1])
    if bias:
        arrays["bias"] = bias * rng.standard_normal(n)
    return arrays


def _low(rng: np.random.Generator, shape: tuple[int, ...], kind: Any, every: bool) -> Array:
    if kind.name in ("int4", "uint4", "uint8"):
        low, high = {"int4": (-8, 8), "uint4": (0, 16), "uint8": (0, 256)}[kind.name]
        return rng.integers(low, high, shape).astype(kind)
    if kind == np.int8:
        return rng.integers(-128 if every else -127, 128, shape).astype(np.int8)
    if every:
        bits = rng.integers(0, 256, shape).astype(np.uint8).view(kind)
        return np.where(np.isfinite(bits), bits, np.zeros((), kind)).astype(kind)
    return rng.standard_normal(shape).astype(kind)


OPS = (
    formula_op(
        "scaled_matmul",
        "a[... k]:low, b[k n]:low, scale_a[...]:low, scale_b[n]:low, bias[n]?, zero_b[n]?:int "
        "-> c[... n]",
        forms={
            "after": PerOutput((_centred(_after),)),
            "before": PerOutput((_centred(_before),)),
            "kept": PerOutput((_centred(_kept),)),
            "offset_after": PerOutput((_offset_after,)),
        },
        gradients=(),
        prepare=_prepare,
        faults=_FAULTS,
        cases=cases,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def scaled_matmul() -> None:
    """c_ij = scale_a_i scale_b_j (sum over k of a_ik b_kj) + bias_j, for the operands as stored.

    a, b        (..., K) and (K, N): float8_e4m3fn and float8_e5m2 (of `ml_dtypes`, or torch's),
                int8, uint8, float16, bfloat16, float32, float64; of `ml_dtypes` also
                float8_e4m3fnuz, float8_e5m2fnuz, float6, float4_e2m1fn, int4 and uint4; the two may
                differ
    scale_a     one number, or one per row of a; float16, bfloat16, float32 or float64, or the
                scales of blocks in float8_e8m0fnu or float8_e4m3fn
    scale_b     one number, or one per column of b
    bias        (N,)

    Scales of groups of K / G terms in a row: scale_a (..., G), scale_b (G, N), or one of them. Each
    group's sum is then scaled before they are added (MXFP8, MXFP4, NVFP4, int4 weights).

    zero_b, whole numbers of scale_b's shape, is subtracted from b (GPTQ, AWQ: b is uint4 or uint8).

    A float8 NaN is NaN, and so is inf - inf; e4m3fn has no infinity. The bound of a float32 c is
    about (K + 3) 2^-24 |scale_a_i scale_b_j| sum |a b|, with sums in any order. It is proven for
    scales applied to the sum, in either order or as their product, and for scales applied to the
    operands, which may be kept in c's format where groups have scales; for zero points subtracted
    from b, or their products from those of b. It covers an integer accumulator that is rounded
    once.

    Raises TypeError for other dtypes, ValueError for shapes that do not fit.
    Source: Micikevicius et al. (2022), "FP8 formats for deep learning", arXiv:2209.05433.
    """
