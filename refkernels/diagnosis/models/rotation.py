"""Rotary embedding whose cosines and sines are numbers of a narrower format.

The output (y_a, y_b) = (x_a c - x_b s, x_b c + x_a s) alone determines c and s of every position,
c = sum(x_a y_a + x_b y_b) / sum(x_a² + x_b²) and s alike. Where they are kept in the narrower
format they are its numbers as far as the output can tell: each saves the bits that the format
lacks, and costs those that name it, counted from the right one. Angles that are computed in the
format are off by some of its roundings only: no rotation, c = 1 and s = 0, is none of these.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.attention_ref.rotary import pairs, rotate
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.units import CAP
from refkernels.metrology import ulp
from refkernels.op import Op
from refkernels.ops import formula_op

_NARROWER = {"float64": ("float32",), "float32": ("bfloat16", "float16")}
_LOST = 3.0  # bits of a number that the roundings of a rotation leave unknown
_ROUNDED = 2.0  # units of the last place: a cosine of the right angle, rounded, is nearer


def narrow_tables(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The rotation by the output's own cosines and sines, if these are numbers of a narrower
    format: the narrowest. Numbers that are right but for their rounding are `narrow_cosines`;
    others are those of other angles."""
    (got,) = outputs.values()
    scaled = problem.params.get("scaling", "none") != "none"
    if scaled or problem.format.name not in _NARROWER or got.dtype != problem.format.storage:
        return
    position = problem.inputs["position"]
    places, place_of = np.unique(position, return_inverse=True)
    place_of = place_of.reshape(position.shape)
    solved = _solved(problem, to_float64(got), place_of, len(places))
    if solved is None:
        return
    for name in _NARROWER[problem.format.name]:
        format = formats.get(name)
        narrow = to_float64(formats.cast(solved, format))
        if np.all(np.abs(narrow - solved) <= 2.0**_LOST * problem.format.u):
            yield from _variant(problem, places, place_of, narrow, format)
            return


def _variant(
    problem: Problem, places: Array, place_of: Array, narrow: Doubles, format: Format
) -> Iterator[Variant]:
    """The rotation by the tables of the places, unless these cost more bits than they save."""
    angles = _right_angles(problem, places)
    right = np.stack([np.cos(angles), np.sin(angles)])
    distance = np.rint(np.abs(narrow - right) / ulp(right, format))
    # Elias's gamma code of each distance, and a sign.
    cost = np.sum(2.0 * np.floor(np.log2(1.0 + distance)) + 2.0, axis=(0, 2))
    saved = 2.0 * narrow.shape[2] * (problem.format.p - format.p - _LOST)
    net = saved - cost
    of_right_angles = bool(np.all(distance <= _ROUNDED))
    if net.sum() <= 0.0:
        return
    if not (of_right_angles or _rounded_angles(problem, narrow, angles, format)):
        return
    cosine, sine = narrow.astype(problem.format.storage)[:, place_of]
    tables = {"position": None, "cosine": cosine, "sine": sine}
    yield Variant(
        "narrow_cosines" if of_right_angles else f"angles_in_{format.name}",
        {"format": format.name} if of_right_angles else {},
        problem.ask(tables, op=_op()),
        price=float(np.sum(np.maximum(CAP - net, 0.0))),
    )


def _dim(problem: Problem) -> int:
    dim = problem.params["dim"]
    return problem.inputs["x"].shape[-1] if dim is None else int(dim)


def _right_angles(problem: Problem, places: Array) -> Doubles:
    """The angles of the places, to about float64."""
    dim = _dim(problem)
    frequency = float(problem.params["base"]) ** (-np.arange(0, dim, 2) / max(dim, 1))
    return places.astype(np.float64)[:, None] * frequency


def _rounded_angles(problem: Problem, narrow: Doubles, angles: Doubles, format: Format) -> bool:
    """Whether the tables are those of the right angles, off by roundings of the format: of the
    exponent, which log(base) multiplies, the power (an ulp), its reciprocal, the position and the
    product; the tables may be off by an ulp and a half."""
    turned = (narrow[0] + 1j * narrow[1]) * np.exp(-1j * angles)
    roundings = 5.0 + abs(np.log(float(problem.params["base"])))
    allowed = format.u * (4.0 + roundings * np.abs(angles))
    lengths_are_one = np.abs(np.abs(turned) - 1.0) <= 4.0 * format.u
    return bool(np.all(lengths_are_one & (np.abs(np.angle(turned)) <= allowed)))


def _solved(problem: Problem, got: Doubles, place_of: Array, count: int) -> Doubles | None:
    """The output's cosines and sines, by place and pair; None where some pair has none."""
    forward = problem.direction == "forward"
    x = to_float64(problem.inputs["x" if forward else problem.op.cotangent])
    size = np.abs(x).max(initial=0.0)
    finite = np.isfinite(size) and np.isfinite(got).all()
    if got.shape != x.shape or not finite or not size:
        return None
    first, second = pairs(_dim(problem), problem.params["layout"])
    place_of_row = np.broadcast_to(place_of, x.shape[:-1]).reshape(-1)
    x, y = (array.reshape(-1, array.shape[-1]) / size for array in (x, got))
    (a, b), (turned_a, turned_b) = ((array[:, first], array[:, second]) for array in (x, y))

    def total(terms: Doubles) -> Doubles:
        sums = np.zeros((count, len(first)))
        np.add.at(sums, place_of_row, terms)
        return sums

    squares = total(a * a + b * b)
    if not np.all(squares > np.finfo(np.float64).tiny):
        return None
    cosine = total(a * turned_a + b * turned_b) / squares
    sine = total(a * turned_b - b * turned_a) / squares
    return np.stack([cosine, sine if forward else -sine])


def _forward(xp: Any, x: Any, cosine: Any, sine: Any, layout: str, dim: int | None) -> Any:
    return rotate(xp, x, cosine, sine, x.shape[-1] if dim is None else dim, layout)


def _backward(xp: Any, dy: Any, x: Any, cosine: Any, sine: Any, **params: Any) -> Any:
    return _forward(xp, dy, cosine, -sine, **params)


@functools.cache
def _op() -> Op:
    """The rotation by given cosines and sines."""
    return formula_op(
        "rotary",
        "x[... d], cosine[... h], sine[... h] -> y[... d]",
        coupled="d h",
        params={"layout": "half", "dim": None},
        forms={"products": _forward},
        backward={"products": _backward},
        gradients=("x",),
        cases=list,
    )
