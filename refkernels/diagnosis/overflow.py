"""Special values from an intermediate that overflows where the result is finite.

    sinh(89)                      exp(89) is infinite in float32, but half of it is not
    tanh = (e^2x - 1)/(e^2x + 1)  NaN from x = 44.4 on

It must exceed its format in every element that is wrongly NaN or infinite (without such elements,
in every wrong one), and be seen wherever it does: as an infinity, NaN or zero. The evidence is in
the places alone (`places`): elements with the same size of the intermediate count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis import places, products
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.records.words import OR

_BORDER = 2.0**-5  # in binary logarithms: this near the format's end, either side is possible

Logarithms = Mapping[str, Callable[[Doubles], Doubles]]


def _formats(problem: Problem) -> Iterator[Format]:
    """The formats that may hold an intermediate."""
    yield problem.format
    if problem.format.p < formats.BINARY32.p:
        yield formats.BINARY32


def named(problem: Problem, format: Format) -> str:
    """The formats of that range that may hold an intermediate."""
    formats = dict.fromkeys((format, *_formats(problem)))
    return OR.join(other.name for other in formats if other.emax == format.emax)


def of_function(
    problem: Problem, logarithms: Logarithms, output: str, wide: Doubles, wrong: Array
) -> Claim | None:
    """An intermediate of a function of one variable; `logarithms`: the binary logarithms of its
    intermediates."""
    special = np.logical_not(np.isfinite(wide))
    x = to_float64(problem.inputs["x"])
    explained = wrong & special if (wrong & special).any() else wrong & (wide == 0)
    visible = np.asarray(special | (wide == 0) | np.logical_not(np.isfinite(x)))
    with np.errstate(all="ignore"):
        sizes = {name: logarithm(x) for name, logarithm in logarithms.items()}
    return first(problem, output, wrong, wrong, np.asarray(explained), sizes, visible)


def first(
    problem: Problem,
    output: str,
    wrong: Array,
    bad: Array,
    explained: Array,
    sizes: dict[str, Doubles],
    visible: Array,
) -> Claim | None:
    """The first intermediate that overflows wherever `explained` is set, and only where
    `visible` is. All masks but `wrong` are of elements or of rows. The claim counts as
    evidence only where it overflows in all bad elements, though not everywhere."""
    if not explained.any() or not visible[explained].all():
        return None
    for name, size in sizes.items():
        for format in _formats(problem):
            end = format.emax + 1
            if np.all(size[explained] > end - _BORDER) and np.all(visible[size > end + _BORDER]):
                others = bad & ~explained & ~(size > end + _BORDER)
                decisive = bool(np.any(size < end - _BORDER) and not np.any(others))
                return _claim(
                    problem, output, wrong, bad, size, format, name, decisive, 2 * len(sizes)
                )
    return None


def of_product(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """A partial sum that may have overflowed (in float16 too); every wrong element is special."""
    product = products.of(problem, output)
    if product is None or np.isfinite(wide[wrong]).any():
        return None
    with np.errstate(all="ignore"):
        size = np.abs(to_float64(product.a)) @ np.abs(to_float64(product.b))
        if product.bias is not None:
            size = size + np.abs(to_float64(product.bias))
        size = np.log2(size).reshape(wide.shape)
    for format in dict.fromkeys((problem.format, formats.BINARY16)):
        if np.all(size[wrong] > format.emax + 1 - _BORDER):
            return _claim(problem, output, wrong, wrong, size, format, "a partial sum")
    return None


def _claim(
    problem: Problem,
    output: str,
    wrong: Array,
    bad: Array,
    size: Doubles,
    format: Format,
    intermediate: str,
    decisive: bool = True,
    trials: int = 2,
) -> Claim:
    details = {
        "intermediate": intermediate,
        "format": named(problem, format),
        "wrong": int(np.count_nonzero(wrong)),
        "overflows": int(np.count_nonzero(size > format.emax + 1)),
    }
    beyond = size > format.emax + 1 - _BORDER
    earns = places.shared(problem, output, wrong, places.by_key(size, beyond, bad & beyond))
    prediction = Prediction(wrong=wrong, counted=decisive, earns=earns)
    return Claim("early_overflow", output, prediction, details, trials=trials)
