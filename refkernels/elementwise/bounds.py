"""Condition numbers, and the bounds of elementwise functions and of their backward passes.

A function that libraries offer is held to a *library limit*, which is a specification and no
theorem: a number of ulp of the exact value (Goldberg's ulp, constant through the subnormals), half
an ulp for sqrt and the reciprocal as in IEEE 754. A function made of others, and every
dx = dy f'(x), has a bound *proven for its named forms* (`running`), provided that the functions
inside keep to the limit: the largest of the forms' bounds, element by element. Where all forms
leave the format's range on their way to a finite result, and for infinite inputs, the limit is the
bound. Where a slope or gradient comes near the format's largest number, an intermediate product may
exceed it, and the bound is infinite.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.blocks import spread
from refkernels.arithmetic.enclosure import Enclosure, directed
from refkernels.arithmetic.formats import Format, exponent_of
from refkernels.arithmetic.jit import njit
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.rounding import ETA
from refkernels.arithmetic.scalars import as_real
from refkernels.elementwise import oracle
from refkernels.elementwise.function import Form, Function
from refkernels.elementwise.running import Running
from refkernels.kernels.real_function import LIMIT, Array, Doubles

_BLOCK = 1 << 13  # elements: some twenty arrays of this size stay in the cache
Bounds = dict[str, Doubles]


@with_default_fenv
def forward_bound(
    function: Function,
    x: Any,
    *,
    format: Format | str,
    limit: float | None = None,
    known: Enclosure | None = None,
) -> Doubles:
    """The bound on the error of f(x) in the format, shaped like x; NaN where f(x) is not finite.

    `limit`: of library functions, in ulp; the function's own by default. `known`: f(x), if an
    oracle has already computed it. Where the format does not hold x, a kernel may compute in a
    format that does and round once more: the bound is then half an ulp plus the limit in ulp of
    that format, if that is more.
    Raises as `oracle.forward` does, and TypeError or ValueError for a limit that is not a number of
    at least 0, and ValueError for an unknown format.
    """
    x, target = as_float_array(x, "x"), formats.get(format)
    if function.forms:
        return _largest(_of_forms(function, function.forms, (x,), target, _limit(limit, LIMIT)))
    values = oracle.forward(function, x) if known is None else known
    ulp = _ulp_of_values(function, x, values, target)
    allowed, own_format = _limit(limit, function.limit), formats.of(x)
    with np.errstate(over="ignore"):
        bound = allowed * ulp
        if not target.holds(own_format):
            finer = _ulp_of_values(function, x, values, formats.working_format(own_format))
            bound = np.maximum(bound, ulp / 2.0 + allowed * finer)
    return np.where((bound == 0.0) & (allowed > 0.0), ETA, bound)  # half of float64's least number


@with_default_fenv
def backward_bound(
    function: Function, dy: Any, x: Any, *, format: Format | str, limit: float | None = None
) -> Doubles:
    """The bound on the error of dx = dy f'(x) in the format, shaped like x; NaN where dx is not
    finite.

    `limit`: of the library functions that the forms call, in ulp.
    Raises as `oracle.backward` does, and as `forward_bound` does for a limit and a format.
    """
    pair = oracle.pair_of(dy, x)
    forms = _of_forms(
        function, function.slope_forms, pair, formats.get(format), _limit(limit, LIMIT)
    )
    return _largest(forms)


@with_default_fenv
def form_bounds(
    function: Function, *arrays: Any, format: Format | str, limit: float | None = None
) -> Bounds:
    """The bounds by form: of f(x) for one array, x, and of dx for two, dy and x. Empty for f(x) of
    a library function. The op's bound is their maximum. Raises as `forward_bound` and
    `backward_bound` do."""
    target, allowed = formats.get(format), _limit(limit, LIMIT)
    if len(arrays) == 1:
        return _of_forms(function, function.forms, (as_float_array(*arrays, "x"),), target, allowed)
    return _of_forms(function, function.slope_forms, oracle.pair_of(*arrays), target, allowed)


def _largest(bounds: Bounds) -> Doubles:
    return np.maximum.reduce(list(bounds.values()))


def _of_forms(
    function: Function,
    forms: tuple[Form, ...],
    inputs: tuple[Array, ...],
    format: Format,
    limit: float,
) -> Bounds:
    """The bounds by form. Where a form leaves the format's range, the largest bound of the other
    forms holds for it, and where all do, the limit in ulp of the exact result."""
    shape = inputs[0].shape
    flat = [np.ascontiguousarray(array).reshape(-1) for array in inputs]
    bounds = np.empty((len(forms), flat[0].size))
    results = np.empty(flat[0].size)

    def block(start: int, stop: int) -> None:
        xp = Running(format, function.primitives, limit)
        with np.errstate(all="ignore"):
            nodes = [xp.array(to_float64(array[start:stop])) for array in flat]
            for row, form in zip(bounds, forms, strict=True):
                result = form.formula(xp, *nodes)
                row[start:stop], results[start:stop] = xp.bound(result), result.m

    spread(flat[0].size, block, _BLOCK)
    valid = np.isfinite(bounds) & np.logical_and.reduce([np.isfinite(array) for array in flat])
    if not valid.all():
        uncovered = np.flatnonzero(~valid.any(axis=0))
        largest = np.max(np.where(valid, bounds, 0.0), axis=0)
        compute: Any = oracle.forward if len(flat) == 1 else oracle.backward
        values = compute(function, *(array[uncovered] for array in flat))
        with np.errstate(over="ignore"):
            largest[uncovered] = limit * _ulp(values, format)[0]
        bounds = np.where(valid, bounds, largest)
    if len(flat) == 2:
        _excuse_steep_slopes(function, flat[0], flat[1], results, format, bounds)
    return {form.name: row.reshape(shape) for form, row in zip(forms, bounds, strict=True)}


def _excuse_steep_slopes(
    function: Function, dy: Array, x: Array, dx: Doubles, format: Format, bounds: Doubles
) -> None:
    """Sets the bounds to infinity where f'(x) or the gradient, or eight times it, overflows the
    format, because an intermediate product may; to NaN where the gradient is not a number."""
    threshold = format.max / 8.0
    ordinary = np.isfinite(x) & np.isfinite(dy)
    bounds[:, ordinary & (np.abs(dx) > threshold)] = np.inf
    with np.errstate(all="ignore"):
        gentle = (np.abs(dx) <= threshold * np.abs(to_float64(dy))) & (dy != 0)
        doubtful = np.flatnonzero(ordinary & ~gentle)
        if not doubtful.size:
            return
        slopes = oracle.slopes(function, x[doubtful])
        steep = np.abs(np.asarray(slopes)) > threshold
    bounds[:, doubtful[steep | np.isinf(slopes.radius)]] = np.inf
    gradients = oracle.backward(function, dy[doubtful], x[doubtful])
    bounds[:, doubtful[~np.isfinite(gradients.hi)]] = np.nan


@with_default_fenv
def forward_condition(function: Function, x: Any) -> Doubles:
    """|x f'(x) / f(x)|, a float64 estimate shaped like x. Raises TypeError for dtypes that
    `oracle.forward` does not take."""
    with np.errstate(all="ignore"):
        return function.condition(to_float64(as_float_array(x, "x")))


@with_default_fenv
def backward_condition(function: Function, dy: Any, x: Any) -> Doubles:
    """|x f''(x) / f'(x)|, a float64 estimate of the condition of dy f'(x) in x (in dy it is 1).
    Raises as `oracle.backward` does."""
    _, x = oracle.pair_of(dy, x)
    with np.errstate(all="ignore"):
        return function.slope_condition(to_float64(x))


def _limit(limit: Any, otherwise: float | None) -> float:
    value = as_real(otherwise if limit is None else limit, "limit")
    if not value >= 0.0:
        raise ValueError(f"limit is {value}, but it must be a number of ulp, at least 0.")
    return value


def _ulp_of_values(function: Function, x: Array, y: Enclosure, format: Format) -> Doubles:
    """ulp(f(x)); the double-double tier decides on which side of a power of two a value lies."""
    ulp, straddles = _ulp(y, format)
    if straddles.any():
        ulp[straddles] = _ulp(oracle.values(function, x[straddles]), format)[0]
    return ulp


def _ulp(exact: Enclosure, format: Format) -> tuple[Doubles, Array]:
    """Goldberg's ulp of the enclosed values, and where the interval holds a power of two: there it
    is the smaller ulp. NaN where the value is not finite."""
    ulp, straddles = np.empty(exact.size), np.empty(exact.size, np.bool_)
    parts = (exact.hi, exact.lo, exact.radius, exact.scale)
    flat = (np.ascontiguousarray(part).reshape(-1) for part in parts)
    _ulps(*flat, format.p, format.emin, ulp, straddles)
    return ulp.reshape(exact.shape), straddles.reshape(exact.shape)


@njit(nogil=True)
def _ulps(
    hi: Any, lo: Any, radius: Any, scale: Any, p: int, emin: int, ulp: Any, straddles: Any
) -> None:
    for i in range(hi.size):
        straddles[i] = False
        if not np.isfinite(hi[i]):
            ulp[i] = np.nan
            continue
        sign = 1.0 if hi[i] >= 0.0 else -1.0
        inner = directed(hi[i], lo[i], -sign * radius[i])
        outer = directed(hi[i], lo[i], sign * radius[i])
        floor = ceiling = emin
        if inner[0] * sign > 0.0:
            floor = max(exponent_of(inner[0], inner[1]) + scale[i], emin)
        if outer[0] != 0.0:
            ceiling = max(exponent_of(outer[0], outer[1]) + scale[i], emin)
        straddles[i] = ceiling > floor
        ulp[i] = np.ldexp(1.0, max(floor - p + 1, -1100))
