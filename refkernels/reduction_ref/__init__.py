"""Reductions along any axes, with their gradients, certified: sum, mean, var, std, norm, prod, max,
cumsum, and the place of the largest number, argmax.

    sum(x, axis=-1), ...                              -> Enclosure
    sum_backward(dy, x, axis=-1), ...                 -> Enclosure

`axis` is an integer, several of them, or None for all; y lacks these axes (cumsum goes along one,
and keeps it). float64 sums are exact however much cancels. `formulas` holds the formulas and the
wrong ways; `OPS` lists the ops. Bounds are proven for sums and products in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.op import Direction, Invariant
from refkernels.ops import Prepared, formula_op
from refkernels.ops.axes import along
from refkernels.ops.public import enclosure_of, gradients_of, public_names
from refkernels.reduction_ref import formulas
from refkernels.reduction_ref.cases import cases_of


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    moved, restore = along(inputs, params.pop("axis"))
    *leading, n = moved["x"].shape
    if "ddof" in params and not n and 0 not in leading and direction == "forward":
        raise ValueError(f"x has shape {inputs['x'].shape}: there is no variance of no elements.")
    if "ddof" in params:
        params["ddof"] = as_count(params["ddof"], "ddof", least=0)
    return Prepared(moved, params, restore)


def _prepare_prod(inputs: dict[str, Any], params: dict[str, Any], _: Direction) -> Prepared:
    moved, restore = along(inputs, params["axis"])
    return Prepared({**moved, "zero": moved["x"] == 0}, {}, restore)


def _prepare_max(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The largest x of each row, and the first of them."""
    moved, restore = along(inputs, params["axis"])
    x = moved["x"]
    first, largest = np.zeros((2, *x.shape), bool)
    if x.size:
        np.put_along_axis(first, x.argmax(axis=-1)[..., None], True, axis=-1)
        largest = x == x.max(axis=-1, keepdims=True)
    return Prepared({**moved, "first": first, "largest": largest}, {}, restore)


def _prepare_place(inputs: dict[str, Any], params: dict[str, Any], _: Direction) -> Prepared:
    """Ranks for numbers that are not all finite: NaN is the largest, as in NumPy and PyTorch."""
    moved, restore = along(inputs, params["axis"])
    x = moved["x"]
    if not x.shape[-1] and 0 not in x.shape[:-1]:
        raise ValueError(f"x has shape {inputs['x'].shape}: no elements have no largest one.")
    if not np.isfinite(x).all():
        x = np.unique(x, return_inverse=True)[1].reshape(x.shape).astype(np.float64)
    return Prepared({"x": x}, {}, restore)


def _prepare_cumsum(inputs: dict[str, Any], params: dict[str, Any], _: Direction) -> Prepared:
    moved, restore = along(inputs, params["axis"], ("x", "dy"), several=False)
    return Prepared(moved, {}, restore)


def _op(
    name: str, forms: Any, gives: str = "y[...]", prepare: Any = _prepare, **described: Any
) -> Any:
    forms_by_name = forms if isinstance(forms, dict) else {name: forms}
    described = {"params": {"axis": -1}, **described}
    return formula_op(
        name, f"x[... n] -> {gives}", "n", forms=forms_by_name, prepare=prepare,
        cases=cases_of(name),
        **described,
    )  # fmt: skip


_NOT_NEGATIVE = Invariant(
    "not_negative", "y >= 0", "forward", "y", lambda got, *_: np.asarray(got, float) < 0
)
_SPREAD: dict[str, Any] = {"params": {"axis": -1, "ddof": 0}, "invariants": (_NOT_NEGATIVE,)}
SUM = _op("sum", formulas.total, total="sum")
MEAN = _op("mean", formulas.mean, backward={"divided": formulas.mean_gradient}, total="mean")
VAR = _op(
    "var", formulas.VAR, backward=formulas.VAR_BACKWARD, truth=formulas.shifted,
    backward_truth=formulas.shifted_gradient, **_SPREAD,
)  # fmt: skip
STD = _op(
    "std", formulas.STD, backward=formulas.STD_BACKWARD, truth=formulas.root(formulas.shifted),
    backward_truth=formulas.shifted_std_gradient, **_SPREAD,
)  # fmt: skip
NORM = _op(
    "norm", formulas.norm, backward={"divided": formulas.by_norm}, faults=formulas.NORM_FAULTS,
    invariants=(_NOT_NEGATIVE,),
)  # fmt: skip
PROD = _op(
    "prod", formulas.prod, faults=formulas.PROD_FAULTS, prepare=_prepare_prod,
    backward={"others": formulas.by_others, "quotient": formulas.by_quotient},
)  # fmt: skip
MAX = _op("max", formulas.largest, faults=formulas.MAX_FAULTS, prepare=_prepare_max)
CUMSUM = _op("cumsum", formulas.cumsum, "y[... n]", _prepare_cumsum)
_PLACE: dict[str, Any] = {"faults": formulas.PLACE_FAULTS, "gradients": ()}
ARGMAX = _op("argmax", formulas.place, "y[...]:low", _prepare_place, **_PLACE)
OPS = (SUM, MEAN, VAR, STD, NORM, PROD, MAX, CUMSUM, ARGMAX)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def sum() -> None:
    """y = x_1 + ... + x_n along the axes; 0 of nothing.

    x           float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    axis        an integer, several of them, or None for all
    certify     the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is (n - 1) 2^-24 sum |x_i|, sums in any order.

    Raises TypeError for other dtypes and axes, ValueError for axes that x lacks.
    Source: Jeannerod and Rump (2013), doi:10.1137/120894488.

    Gradient: dx_i = dy, exactly. dy has y's shape.
    """


@_enclosure
def mean() -> None:
    """y = (x_1 + ... + x_n) / n along the axes. Otherwise as `sum`.

    The bound is the sum's over n, and a rounding or two: divided by n, or times 1 / n. Raises
    ValueError for the mean (var, std, max) of no elements too.
    Source: Jeannerod and Rump (2013), doi:10.1137/120894488.

    Gradient: dx_i = dy / n. dy has y's shape.
    """


@_enclosure
def var() -> None:
    """y = sum (x_i - mean x)² / (n - ddof) along the axes, exactly 0 where x is constant.

    ddof        0 (NumPy's default) or 1 (PyTorch's), or more; where it exceeds n, n - ddof is 0

    Otherwise as `sum`. The bound holds for two passes, and for Welford's and Chan's one,
    which loses 2.2 n u κ of y, κ = max |x| / std x, and anything where n u exceeds 0.9.

    Raises ValueError for another ddof. Source: Chan, Golub and LeVeque (1983),
    doi:10.1080/00031305.1983.10483115.

    Gradient: dx_i = 2 dy (x_i - mean x) / (n - ddof). dy has y's shape.
    """


@_enclosure
def std() -> None:
    """y = sqrt(var(x, ddof)). Otherwise as `var`. Source: Chan, Golub and LeVeque (1983),
    doi:10.1080/00031305.1983.10483115.

    Gradient: dx_i = dy (x_i - mean x) / ((n - ddof) y); 0 / 0, NaN, where y is 0. dy has y's
    shape. The bound allows a y kept in x's format.
    """


@_enclosure
def norm() -> None:
    """y = sqrt(sum x_i²), the Euclidean norm along the axes. Otherwise as `sum`.

    The bound is about (n / 2 + 2) 2^-24 y in float32, and infinite where the squares overflow.
    Source: Jeannerod and Rump (2018), "On relative errors of floating-point operations", Math.
    Comp. 87(310).

    Gradient: dx_i = dy x_i / y; 0 / 0, NaN, where y is 0. dy has y's shape.
    """


@_enclosure
def prod() -> None:
    """y = x_1 x_2 ... x_n along the axes; 1 of nothing. Otherwise as `sum`.

    The bound is about n 2^-24 |y| in float32; infinite where the product of the factors beyond 1
    overflows, because a kernel may meet these factors first.
    Source: Rump, Bünger and Jeannerod (2016), doi:10.1007/s10543-015-0555-z.

    Gradient: dx_i = dy times the product of the other x, also where x_i is 0. dy has y's shape.
    The bound allows dy y / x_i where x_i is not 0, with y kept in x's format.
    """


@_enclosure
def max() -> None:
    """y = the largest x along the axes, exactly; NaN where one x is NaN. Otherwise as `sum`.
    Source: IEEE 754-2019, section 9.6 (maximum).

    Gradient: dx_i = dy / k where x_i is one of the k largest, else 0. dy has y's shape. Source:
    PyTorch documentation, `torch.amax`.
    """


@_enclosure
def cumsum() -> None:
    """y_i = x_1 + ... + x_i along one axis; y has x's shape. Otherwise as `sum`.

    The bound of y_i is (i - 1) 2^-24 (|x_1| + ... + |x_i|) in float32, sums in any order.
    Source: Jeannerod and Rump (2013), doi:10.1137/120894488.

    Gradient: dx_i = dy_i + ... + dy_n. dy has x's shape.
    """


@_enclosure
def argmax() -> None:
    """y = the place of the largest x along the axes, exactly: of equal numbers the first, of a NaN
    its own, and in C order where there are several axes. y holds whole numbers. Otherwise as `sum`.
    Source: NumPy documentation, `numpy.argmax`.
    """


__getattr__ = gradients_of(OPS, globals())
