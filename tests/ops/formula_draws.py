"""Inputs for any op that is a formula, from its signature: shapes of all sizes, hard numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Direction, Op

KINDS = (
    "normal", "scores", "equal", "integers", "cancelling", "subnormal", "large", "signed zeros",
)  # fmt: skip


DOMAINS: dict[tuple[str, str], Any] = {
    ("kl_div", "target"): np.abs,
    ("pow", "x"): lambda x: np.where(x == 0.0, np.ones_like(x), np.abs(x)),
    ("pow", "exponent"): lambda x: np.clip(x, -(2**15), 2**15),  # 2^±2^30 and beyond have no scale
}
"""What an input's numbers become where an op is not defined for all."""


def whole(rng: np.random.Generator, shape: tuple[int, ...], kind: str, most: int) -> Any:
    """Truth values, or integers below a length: of classes, of a table."""
    return rng.random(shape) < 0.5 if kind == "bool" else rng.integers(0, max(most, 1), shape)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str, dtype: str) -> Any:
    """Numbers of a kind, rounded to the dtype."""
    format = formats.get(dtype)
    x = rng.standard_normal(shape)
    if kind == "scores":
        x = x * 10.0 ** rng.uniform(0, 4)
    elif kind == "equal":
        x = np.full(shape, float(rng.choice([0.0, 1.0, -3.0, 0.1])))
    elif kind == "integers":
        x = np.round(4.0 * x)
    elif kind == "cancelling":
        x = 1000.0 + 1e-3 * x
    elif kind == "subnormal":
        x = x * format.min_normal
    elif kind == "large":
        x = x * format.max**0.45
    elif kind == "signed zeros":
        x = np.where(rng.random(shape) < 0.5, 0.0 * x, x)
    return formats.round_to(np.clip(x, -format.max, format.max), dtype)


def draw(
    op: Op,
    direction: Direction,
    rng: np.random.Generator,
    dtype: str,
    kind: str | None = None,
    sizes: tuple[tuple[int, ...], int] | None = None,
) -> dict[str, Any]:
    """The inputs of one question; optional ones are left out half of the time. `sizes`: of the
    leading axes, and of every letter."""
    assert op.definition is not None
    signature = op.definition.way(direction).signature
    leading = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3))))
    lengths: dict[str, int] = {}
    if sizes:
        leading = sizes[0]
        lengths = {x: sizes[1] for one in signature.takes.values() for x in one.own}
    for letter in (x for one in signature.takes.values() for x in one.own):
        lengths.setdefault(letter, int(rng.integers(1, 9)))
    given: dict[str, Any] = {}
    for name, argument in signature.takes.items():
        if argument.optional and rng.random() < 0.5:
            continue
        own = tuple(lengths[x] for x in argument.own)
        chosen = kind or str(rng.choice(KINDS))
        shape = (leading if argument.rows else ()) + own
        if argument.kind == "float":
            drawn = numbers(rng, shape, chosen, dtype)
            given[name] = np.asarray(DOMAINS.get((op.name, name), np.asarray)(drawn))
        else:
            most = lengths.get("v", next(iter(lengths.values()), 1))  # of a table, or of classes
            given[name] = whole(rng, shape, argument.kind, most)
    return given
