"""Cases of asin, acos, atan, sinpi and cospi: few, each where the function is hard."""

from functools import partial

import numpy as np

from refkernels.arithmetic.formats import Format
from refkernels.elementwise import cases
from refkernels.elementwise.cases import Points
from refkernels.kernels.real_function import Doubles
from refkernels.op import Case

_ODD = 259  # leaves a remainder in every vector width


def cases_of(name: str) -> list[Case]:
    """All cases of one function."""
    make = partial(cases.make, name)
    low, high = _BINADES[name]
    named, hard = _HARD[name]
    return [
        make("binades", {"low": low, "high": high}, partial(cases.binades, low, high, 1000)),
        make(named, {}, hard),
        make("subnormals", {}, partial(cases.subnormals, 400)),
        make("specials", {}, cases.specials),
        make("invariance", {"n": _ODD}, partial(_moderate, name)),
    ]


def _edge(format: Format, generator: np.random.Generator) -> Doubles:
    """Near ±1, where the slope is infinite, and near ±1/2, where algorithms change."""
    steps = np.arange(60) * format.u
    near_one = np.concatenate([1 - steps, 1 - np.exp2(-generator.uniform(1, format.p, 300)), [1.5]])
    x = np.concatenate([near_one, 0.5 + steps / 2, 0.5 - steps / 4])
    return np.concatenate([x, -x])


def _around_one(format: Format, generator: np.random.Generator) -> Doubles:
    """Near ±1, where algorithms change, and where atan reaches pi/2 in the format."""
    steps = np.arange(60) * format.u
    far = np.exp2(generator.uniform(format.p - 4, format.p + 4, 300))
    x = np.concatenate([1 - steps, 1 + 2 * steps, np.minimum(far, format.max)])
    return np.concatenate([x, -x])


def _near_halves(format: Format, generator: np.random.Generator) -> Doubles:
    """Multiples of 1/2, of 1/4 and their neighbours, up to where all are even integers."""
    high = min(2.0 ** (format.p + 1), format.max)
    k = np.concatenate([np.arange(9.0), np.exp2(generator.uniform(3, np.log2(high), 300))])
    x = np.rint(4 * k) / 4
    around = x + np.maximum(x, 0.25) * format.u * 2 * generator.integers(-2, 3, x.size)
    x = np.minimum(np.concatenate([x, around]), format.max)
    return x * generator.choice([-1.0, 1.0], x.size)


def _moderate(name: str, format: Format, generator: np.random.Generator) -> Doubles:
    return generator.uniform(-1, 1, _ODD) * (1.0 if name in ("asin", "acos") else 20.0)


_BINADES = {
    "asin": (-30, -1),
    "acos": (-30, -1),
    "atan": (-30, 100),
    "sinpi": (-30, 30),
    "cospi": (-30, 30),
}
_HARD: dict[str, tuple[str, Points]] = {
    "asin": ("edges", _edge),
    "acos": ("edges", _edge),
    "atan": ("edges", _around_one),
    "sinpi": ("near_halves", _near_halves),
    "cospi": ("near_halves", _near_halves),
}
