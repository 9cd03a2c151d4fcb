"""A step in a narrow format: parameters that hold few digits, and how updates are not lost in them.

    w' = g(w + t),  t = u + comp,  comp' = t - (w' - w)      g rounds to the format `to`

Without comp t = u, and an update of less than half a step of the format is lost. comp, Kahan's
compensation, carries it to the next step; draws, from [0, 1), round w + t stochastically.

Sources: Kahan (1965), doi:10.1145/363707.363723; Zamirai et al. (2021), arXiv:2010.06192.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from refkernels.arguments import as_text
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.grids import grid
from refkernels.op import Direction, Op
from refkernels.ops import Prepared, formula_op
from refkernels.ops.cases import Arrays, listed


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    if (draws := inputs.get("draws")) is not None and not ((draws >= 0) & (draws < 1)).all():
        raise ValueError("draws are numbers of at least 0 and less than 1, and some are not.")
    return Prepared(inputs, {"to": grid(as_text(params["to"], "to") or " ").name})


def narrow_step(
    xp: Any, param: Any, update: Any, comp: Any = None, draws: Any = None, *, to: str
) -> Any:
    total = update if comp is None else xp.may_store(update + comp)
    moved = param + total
    new = xp.round(moved, to)
    if draws is not None:
        below, above = xp.round(moved, to, "down"), xp.round(moved, to, "up")
        new = xp.where(draws * (above - below) < moved - below, above, below)
    return new, None if comp is None else total - (new - param)


def _arrays(given: str, size: float, n: int, rng: np.random.Generator, dtype: str) -> Arrays:
    """Parameters of bfloat16, and updates of about `size` of them."""
    param = rng.standard_normal(n).astype(ml_dtypes.bfloat16).astype(float)
    arrays: Arrays = {"param": param, "update": size * rng.standard_normal(n)}
    arrays |= {"comp": 2.0**-10 * rng.standard_normal(n)} if "comp" in given else {}
    arrays |= {"draws": rng.integers(0, 128, n) / 128.0} if "draws" in given else {}
    if "specials" in given:
        arrays["update"][3], arrays["param"][5] = np.nan, np.inf
    return arrays


def _of(regime: str, given: str = "", size: float = 2.0**-9, n: int = 203, **params: Any) -> Any:
    return regime, {"size": size, **params}, partial(_arrays, given, size, n), params


OP: Op = formula_op(
    "narrow_step",
    "param[...], update[...], comp[...]?, draws[...]? -> param[...], comp[...]",
    gradients=(),
    params={"to": "bfloat16"},
    prepare=_prepare,
    forms={"rounded": narrow_step},
    cases=listed(
        "narrow_step",
        _of("plain"),
        _of("lost", size=2.0**-12),
        _of("kahan", "comp"),
        _of("kahan", "comp", 2.0**-12),
        _of("stochastic", "draws"),
        _of("formats", "comp", to="float16"),
        _of("formats", size=2.0**-5, to="float8_e4m3fn"),
        _of("specials", "comp specials"),
        _of("invariance", "comp", n=259),
        directions=("forward",),
    ),
)


def lost_updates(param: Any, update: Any, to: str = "bfloat16") -> int:
    """How many parameters stay what they are, update by update: w = g(w + u) though u is not 0, g
    rounding to the nearest number of the format `to`. param and update have one shape.

    Exactly, and without compensation or draws, which `narrow_step` has. Otherwise as `narrow_step`.
    """
    old, moved = as_float_array(param, "param"), as_float_array(update, "update")
    new = OP.ask({"param": old, "update": moved, "to": to, "certify": "enclosure"})["param"]
    return int(np.count_nonzero((new.hi == to_float64(old)) & (moved != 0)))
