"""Distances of rows, with their gradients, certified.

    cosine_similarity    y = Σ x_i o_i / (max(|x|, eps) max(|o|, eps))
    cdist                y_ij = |a_i - b_j|, Euclidean or, for p = 1, the sum of absolute values

The gradient of a distance 0 is 0, and so is that of the length of a vector shorter than eps.

Source: PyTorch documentation, `torch.nn.functional.cosine_similarity` and `torch.cdist`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.op import Case, Direction
from refkernels.ops import Fault, Prepared, formula_op
from refkernels.ops.axes import along
from refkernels.ops.cases import Arrays, case
from refkernels.ops.domains import POSITIVE
from refkernels.ops.public import enclosure_of, enclosures_of, gradients_of, public_names

# --- cosine similarity ----------------------------------------------------------------------------


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    moved, restore = along(inputs, params["axis"], ("x", "other"), several=False)
    return Prepared(moved, {"eps": params["eps"]}, restore)


def _lengths(xp: Any, x: Any, other: Any, eps: Any) -> Any:
    return tuple(xp.maximum(xp.may_store(xp.norm(part)), eps) for part in (x, other))


def _divided(xp: Any, x: Any, other: Any, eps: Any) -> Any:
    first, second = _lengths(xp, x, other, eps)
    product = xp.may_store(xp.sum(x * other))
    return xp.either(product / xp.may_store(first * second), product / first / second)


def _normalised(xp: Any, x: Any, other: Any, eps: Any) -> Any:
    first, second = _lengths(xp, x, other, eps)
    divided = xp.sum(xp.may_store(x / first) * xp.may_store(other / second))
    multiplied = xp.sum(xp.may_store(x * (1 / first)) * xp.may_store(other * (1 / second)))
    return xp.either(divided, multiplied)


def _slopes(xp: Any, dy: Any, x: Any, other: Any, eps: Any) -> Any:
    """(o / |o| - y x / |x|) / |x|, whose second part is 0 for an x shorter than eps."""
    first, second = _lengths(xp, x, other, eps)
    units = xp.may_store(x / first), xp.may_store(other / second)
    y = xp.saved(xp.sum(units[0] * units[1]))
    found = []
    for part, own, beside, length in (
        (x, units[0], units[1], first), (other, units[1], units[0], second),
    ):  # fmt: skip
        along_it = xp.where(xp.norm(part) > eps, y * own, xp.number(0))
        found.append(
            xp.either(dy * ((beside - along_it) / length), dy / length * (beside - along_it))
        )
    return tuple(found)


def _slopes_of_norms(xp: Any, dy: Any, x: Any, other: Any, eps: Any) -> Any:
    """Of lengths whose derivatives stay those of |x| and |o| where eps replaces them."""
    first, second = _lengths(xp, x, other, eps)
    y = xp.sum(x / first * (other / second))
    return tuple(
        dy * ((beside / far - y * (part / xp.norm(part))) / near)
        for part, near, beside, far in ((x, first, other, second), (other, second, x, first))
    )


def _eps_on_product(how: Any, xp: Any, x: Any, other: Any, eps: Any) -> Any:
    return xp.sum(x * other) / how(xp, xp.norm(x) * xp.norm(other), eps)


_EPS = (lambda xp, product, eps: xp.maximum(product, eps), lambda xp, product, eps: product + eps)


# --- distances of all pairs -----------------------------------------------------------------------


def _prepare_pairs(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    if type(params["p"]) is not int or params["p"] not in (1, 2):
        raise ValueError(f"p is {params['p']!r}: it must be 1 or 2.")
    return Prepared(inputs, dict(params))


def _differences(xp: Any, a: Any, b: Any) -> Any:
    """(rows, m, n, d)."""
    (_, m, d), n = a.shape, b.shape[-2]
    return xp.reshape(a, (a.shape[0], m, 1, d)) - xp.reshape(b, (b.shape[0], 1, n, d))


def _length(xp: Any, d: Any, p: int) -> Any:
    return xp.sqrt(xp.sum(xp.square(d))) if p == 2 else xp.sum(abs(d))


def _direct(xp: Any, a: Any, b: Any, p: int) -> Any:
    y = _length(xp, _differences(xp, a, b), p)
    return xp.reshape(y, y.shape[:-1])


def _pulls(xp: Any, dy: Any, a: Any, b: Any, p: int) -> Any:
    d, zero = _differences(xp, a, b), xp.number(0)
    g = xp.reshape(dy, (*dy.shape, 1))
    if p == 1:
        pulls = xp.where(d > 0, g, xp.where(d < 0, -g, zero * g))
    else:
        y = xp.saved(_length(xp, d, p))
        pulls = xp.where(y > 0, xp.either(g / y * d, g * (d / y)), zero)
    da, db = xp.sum(pulls, axis=2), -xp.sum(pulls, axis=1)
    return xp.reshape(da, (*dy.shape[:2], d.shape[-1])), xp.reshape(db, b.shape)


def _by_products(xp: Any, a: Any, b: Any, p: int) -> Any:
    """√(|a|² + |b|² - 2 a·b), which cancels where a and b are near each other."""
    if p == 1:
        return _direct(xp, a, b, p)
    turned = xp.transpose(b, (0, 2, 1))
    squares = xp.sum(xp.square(a)) + xp.transpose(xp.sum(xp.square(b)), (0, 2, 1))
    return xp.sqrt(xp.maximum(squares - 2 * xp.matmul(a, turned), xp.number(0)))


# --- cases ----------------------------------------------------------------------------------------


def _drawn(
    shapes: dict[str, tuple[int, ...]], size: float, rng: np.random.Generator, dtype: str, *,
    offset: float = 0.0, copied: bool = False, special: bool = False,
) -> Arrays:  # fmt: skip
    """Arrays of these sizes; the first two, the vectors, may lie far from 0 or be equal in part."""
    arrays: Arrays = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    first, second = (arrays[name] for name in list(shapes)[:2])
    for vectors in (first, second):
        vectors *= size
        vectors += offset
    if copied:
        second[..., ::2, :] = first[..., : second.shape[-2] : 2, :]
    if special:
        first[..., 1, 2], second[..., 0, 1], first[..., 2, :] = np.nan, np.inf, 0.0
    return arrays


def _cosine_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "cosine_similarity")

    def rows(m: int, n: int, size: float = 1.0, **how: Any) -> Any:
        return partial(_drawn, {"x": (m, n), "other": (m, n), "dy": (m,)}, size, **how)

    crossed = partial(_drawn, {"x": (9, 5), "other": (9, 5), "dy": (5,)}, 1.0)
    return [
        make("row_length", {"n": 8}, rows(7, 8)),
        make("row_length", {"n": 768}, rows(6, 768)),
        make("parallel", {"n": 64}, rows(9, 64, 0.01, offset=1.0)),
        make("eps", {"eps": 0.5}, rows(9, 17, 0.1), {"eps": 0.5}),
        make("axis", {"axis": 0}, crossed, {"axis": 0}),
        make("specials", {}, rows(5, 6, special=True)),
        make("invariance", {"rows": 37}, rows(37, 19)),
    ]


def _pair_cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "cdist")

    def pairs(m: int, n: int, d: int, size: float = 1.0, **how: Any) -> Any:
        return partial(_drawn, {"a": (m, d), "b": (n, d), "dy": (m, n)}, size, **how)

    return [
        make("rows", {"m": 5, "n": 7}, pairs(5, 7, 6)),
        make("rows", {"m": 30, "n": 29}, pairs(30, 29, 16)),
        make("near", {"offset": 100}, pairs(30, 28, 8, offset=100.0)),
        make("equal", {}, pairs(8, 6, 5, copied=True)),
        make("manhattan", {"p": 1}, pairs(9, 7, 12), {"p": 1}),
        make("specials", {}, pairs(5, 4, 6, special=True)),
        make("invariance", {"rows": 11}, partial(
            _drawn, {"a": (11, 3, 5), "b": (11, 4, 5), "dy": (11, 3, 4)}, 1.0
        )),
    ]  # fmt: skip


OPS = (
    formula_op(
        "cosine_similarity",
        "x[... n], other[... n] -> y[...]",
        "n",
        params={"axis": -1, "eps": 1e-8},
        domains={"eps": POSITIVE},
        prepare=_prepare,
        forms={"divided": _divided, "normalised": _normalised},
        backward={"units": _slopes},
        faults=(
            *(Fault("eps_on_product", partial(_eps_on_product, how)) for how in _EPS),
            Fault("limited_length_differentiated", backward=_slopes_of_norms),
        ),
        cases=_cosine_cases,
    ),
    formula_op(
        "cdist",
        "a[... m d], b[... n d] -> y[... m n]",
        "d",
        params={"p": 2},
        prepare=_prepare_pairs,
        forms={"direct": _direct},
        backward={"direct": _pulls},
        faults=(Fault("distance_by_products", _by_products, unstable=True),),
        cases=_pair_cases,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)
_enclosures = enclosures_of(OPS)


@_enclosure
def cosine_similarity() -> None:
    """y = Σ x_i o_i / (max(|x|, eps) max(|o|, eps)) along the axis; y lacks it.

    x, other    of one shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    eps         above 0, exactly, as binary64
    certify     the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is about (2 n + 6) 2^-24 Σ |x_i o_i| / (|x| |o|), proven for
    the sum divided by the lengths and for vectors that are divided first. Raises TypeError for
    other dtypes, ValueError for shapes that differ and an axis that x lacks.
    Source: PyTorch documentation, `torch.nn.functional.cosine_similarity`.

    Gradient: (dx, dother): dx = dy (o / |o| - y x / |x|) / |x|, each length at least eps, and
    for an x shorter than eps without its second term. dy has y's shape.
    """


@_enclosure
def cdist() -> None:
    """y_ij = (Σ_k |a_ik - b_jk|^p)^(1/p), p = 1 or 2.

    a, b    (..., m, d) and (..., n, d)

    The bound of a float32 kernel is about (d / 2 + 3) 2^-24 y, for p = 1 d 2^-24 y: that of
    differences, not of √(|a|² + |b|² - 2 a·b), which cancels (`explain`: distance_by_products).
    Raises ValueError for shapes that do not fit and another p. Otherwise as `cosine_similarity`.
    Source: PyTorch documentation, `torch.cdist`.

    Gradient: (da, db): da_i = Σ_j dy_ij (a_i - b_j) / y_ij, with the signs of a_i - b_j for p =
    1, and 0 where y_ij is 0; db_j is minus the sum over i.
    """


__getattr__ = gradients_of(OPS, globals())
