"""LayerNorm by `kernels.rows.float64`, with one radius for each row of y and dx.

It answers where float32 holds x and dy. What stays open goes on to the tiers of every formula
(`ops.refine`), and so do rows, dweight and dbias whose radius is more than _POOR float32 ulp of
their largest element. float64 inputs, and questions about float64, are none of its business.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, small
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.blocks import BLOCK, each_block, read_only
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.ladder import Draft, Indices, Open
from refkernels.arithmetic.question import Question
from refkernels.kernels.rows import array_float64, float64
from refkernels.kernels.rows.screening import screen_of
from refkernels.op import Direction
from refkernels.ops.canonical import Canonical

Array = npt.NDArray[Any]
Values = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Drafts = dict[str, Draft]
_CHUNK = 2**17  # elements: several float64 temporaries of this size stay in the cache
_MANY = 32  # blocks: where there would be more, they are longer, so that threads share fewer pages
_POOR = 2.0**-16  # ulp: far below the resolution of a reported ULP error


def first_tier(
    direction: Direction, question: Canonical, goal: Question
) -> tuple[Drafts, Open] | None:
    """The drafts of all outputs and their open elements; None where it does not help."""
    x, dy, eps = question.arrays["x"], question.arrays.get("dy"), question.params["eps"]
    assert x is not None
    rows = [x] if dy is None else [x, dy]
    narrow = all(formats.of(array).p <= formats.BINARY32.p for array in rows)
    weight = _affine(question.arrays["weight"], x.shape[1], 1.0)
    bias = _affine(question.arrays["bias"], x.shape[1], 0.0)
    suits = goal.kind == "enclosure" or goal.format.p <= formats.BINARY32.p
    if not (narrow and suits and _tame(weight) and _tame(bias) and _tame(np.array([eps]))):
        return None
    if dy is None:
        return _forward(x, weight, bias, eps, goal)
    return _backward(x, dy, weight, eps, goal)


def _affine(array: Array | None, n: int, default: float) -> Values:
    return read_only(np.full(n, default) if array is None else to_float64(array).reshape(-1))


def _tame(values: Values) -> bool:
    """Whether all are 0, or of a magnitude that the kernel allows."""
    size = np.abs(values)
    allowed = (size >= float64.SMALLEST) & (size <= float64.LARGEST)
    return bool(np.all((values == 0.0) | allowed))


def _forward(
    x: Array, weight: Values, bias: Values, eps: float, goal: Question
) -> tuple[Drafts, Open]:
    height, n = x.shape
    hi, rows = np.empty((height, n)), np.zeros(height, float64.STATISTICS)
    radius, top, doubts = np.zeros((3, height))
    step, screen = max(1, BLOCK // n), screen_of(goal)
    for chunk in _chunks(step, x):
        out = tuple(part[chunk] for part in (rows, hi, radius, top, doubts))
        arguments = _as_float32(x[chunk]), weight, bias, eps
        count = len(hi[chunk])
        fallback, kernel = array_float64.normalise_rows, float64.normalise_rows
        if small.allowance.covers(fallback, hi[chunk].size, array_float64.steps(n), kernel=kernel):
            fallback(*arguments, screen, out)
            continue
        block = max(step, min(4 * step, count // _MANY))
        each_block(kernel, count, *arguments, screen, out, block=block)
    y, left = _rows(rows["state"], (hi, radius, top, doubts), goal)
    numbers, open_numbers = _row_numbers(x, rows, goal)
    return {"y": y, **numbers}, {"y": left, **open_numbers}


def _backward(
    x: Array, dy: Array, weight: Values, eps: float, goal: Question
) -> tuple[Drafts, Open]:
    height, n = x.shape
    hi, rows = np.empty((height, n)), np.zeros(height, float64.STATISTICS)
    radius, top, doubts = np.zeros((3, height))
    step, sums = float64.block_rows(height), float64.empty_sums(height, n)
    screen = screen_of(goal)
    for chunk in _chunks(step, x, dy):
        out = tuple(part[chunk] for part in (rows, hi, radius, top, doubts))
        arguments = *map(_as_float32, (x[chunk], dy[chunk])), weight, eps, step, screen, out
        blocks = sums[chunk.start // step :]
        each_block(float64.differentiate_rows, len(hi[chunk]), *arguments, blocks, block=step)
    parts = np.zeros((2, 3, n))
    float64.column_sums(sums, height, *parts)
    dx, left = _rows(rows["state"], (hi, radius, top, doubts), goal)
    gradients, left_of_columns = _parameter_gradients(rows["state"], rows["r"], goal, parts)
    return {"dx": dx, **gradients}, {"dx": left, **left_of_columns}


def _chunks(step: int, *arrays: Array) -> Iterator[slice]:
    """All rows at once where nothing needs a copy, else slices of a few blocks of `step` rows."""
    height, n = arrays[0].shape
    size = max(1, 4 * BLOCK // (step * n)) * step
    if all(a.dtype == np.float32 and a.flags.c_contiguous for a in arrays):
        size = max(height, 1)
    return (slice(at, min(at + size, height)) for at in range(0, height, size))


def _as_float32(values: Array) -> npt.NDArray[np.float32]:
    """In C order, read-only; copied only where necessary."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is data here
        return read_only(np.ascontiguousarray(values, dtype=np.float32))


def _poor(radius: Values, top: Values, goal: Question) -> Mask:
    """Where a radius is too wide beside numbers <= top: more than _POOR ulp, or a subnormal's. This
    makes a certified rounding as sharp as an enclosure. The question "ulp" sets its own
    sharpness."""
    if goal.kind == "ulp":
        return np.zeros(radius.shape, np.bool_)
    limit: Mask = np.greater(radius, _POOR * 2.0**-24 * top)
    return limit


def _rows(state: Array, drawn: tuple[Values, ...], goal: Question) -> tuple[Draft, Indices]:
    """A draft (rows, n) and its open elements: rows for the next tier and rows of a poor radius as
    a whole, and elsewhere the elements of doubtful rows that the question leaves open, some rows at
    a time."""
    hi, radius, top, doubts = drawn
    unsafe, unknown = _poor(radius, top, goal), state == float64.NEXT_TIER
    hi[unknown], radius[unknown], unsafe[unknown] = 0.0, np.inf, True
    doubtful, n = np.flatnonzero(unsafe | (doubts > 0.0)), hi.shape[1]
    open_places, length = [np.empty(0, np.intp)], max(1, _CHUNK // n)
    for start in range(0, doubtful.size, length):
        rows = doubtful[start : start + length]
        marks = goal.undecided(Draft(hi[rows], 0.0, radius[rows, None]).enclosure())
        at, columns = np.divmod(np.flatnonzero(marks | unsafe[rows, None]), n)
        open_places.append(rows[at] * n + columns)
    return Draft(hi, 0.0, radius[:, None]), np.concatenate(open_places)


def _row_numbers(x: Array, rows: Array, goal: Question) -> tuple[Drafts, Open]:
    """mean and rstd: mean = c + delta, or the extended sum of a row that is not finite."""
    special = np.flatnonzero(rows["state"] == float64.NOT_FINITE)
    unsafe = rows["state"] == float64.NEXT_TIER
    with np.errstate(invalid="ignore"):
        high, low = two_sum.py_func(rows["c"], rows["delta"])
        high[special] = [_extended_sum(to_float64(x[i])) for i in special]
    low[special] = 0.0
    wide = rows["mean_error"].copy()
    wide[special] = 0.0
    hi = np.where(rows["state"] <= float64.CONSTANT, rows["r"], np.nan)
    radius = np.where(np.isfinite(hi), hi, 0.0) * rows["r_error"] * float64.SLACK
    hi, radius = np.where(unsafe, 0.0, hi), np.where(unsafe, np.inf, radius)
    columns = {"mean": (high, low, wide), "rstd": (hi, np.zeros_like(hi), radius)}
    drafts = {name: Draft(*(part[:, None] for part in parts)) for name, parts in columns.items()}
    marks = {name: unsafe[:, None] | goal.undecided(d.enclosure()) for name, d in drafts.items()}
    marks["rstd"] |= _poor(radius, np.abs(hi), goal)[:, None]
    return drafts, {name: np.flatnonzero(draft) for name, draft in marks.items()}


def _extended_sum(values: Values) -> float:
    """The sum of values of which some are infinite or NaN."""
    return float(np.sum(values[~np.isfinite(values)]))


def _parameter_gradients(
    state: Array, r: Values, goal: Question, parts: Values
) -> tuple[Drafts, Open]:
    """dweight and dbias from (2, 3, n): their hi, lo and radius."""
    if ((state == float64.NOT_FINITE) | ((state == float64.CONSTANT) & np.isinf(r))).any():
        parts[0] = np.array([np.nan, 0.0, 0.0])[:, None]
        special = np.zeros(parts.shape[2], np.bool_)
    else:
        special = ~np.isfinite(parts[0]).all(axis=0) | (state == float64.NEXT_TIER).any()
    drafts, left = {}, {}
    unsafe: Mapping[str, Mask] = {
        "dweight": special, "dbias": ~np.isfinite(parts[1]).all(axis=0)
    }  # fmt: skip
    for part, (name, mask) in zip(parts, unsafe.items(), strict=True):
        part[:2, mask], part[2, mask] = 0.0, np.inf
        drafts[name] = Draft(*part[:, None])
        mask = mask | goal.undecided(drafts[name].enclosure()).reshape(-1)
        top = np.max(np.abs(part[0]), initial=0.0)
        left[name] = np.flatnonzero(mask | _poor(part[2], top, goal))
    return drafts, left
