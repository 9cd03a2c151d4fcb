"""The formulas of weights that are divided by a norm, and their cases.

    weight_norm      y = g x / |x|                      dx = g / |x| (dy - x̂ (x̂ . dy)), dg = x̂ . dy
    spectral_norm    y = x / s,  s = u'ᵀ x v            dx = (dy - (sum dy y) u' vᵀ) / s

x̂ = x / |x|; u' and v are the unit vectors after power iterations, which have no derivative.

Sources: Salimans and Kingma (2016), arXiv:1602.07868; Miyato et al. (2018), arXiv:1802.05957.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.axes import along
from refkernels.ops.cases import drawn, listed, with_specials

MOST = 16  # power iterations


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    moved, restore = along(inputs, params["axis"], ("x", "dy"))
    return Prepared(moved, {}, restore)


def scaled(xp: Any, x: Any, g: Any) -> Any:
    """The norm may be kept in the arrays' format."""
    length = xp.may_store(xp.norm(x))
    return xp.either(x * xp.may_store(g / length), xp.either(x / length * g, x * g / length))


def scaled_gradient(xp: Any, dy: Any, x: Any, g: Any) -> Any:
    length = xp.saved(xp.norm(x))
    unit = x / length
    shared = xp.sum(dy * unit)
    composed = dy * (g / length) - x * (g / length * (shared / length))
    dx = xp.either(g / length * (dy - unit * shared), composed)
    return dx, xp.either(shared, xp.sum(dy * x) / length)


# --- by the largest singular value ----------------------------------------------------------------


def prepare_matrix(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """Raises ValueError for less than one iteration, and for more than bounds can follow."""
    iterations = as_count(params["n_power_iterations"], "n_power_iterations", least=1)
    if iterations > MOST:
        raise ValueError(f"n_power_iterations is {iterations}: at most {MOST} are followed.")
    return Prepared(inputs, {"iterations": iterations, "eps": params["eps"]})


def spectral(xp: Any, x: Any, u: Any, iterations: int, eps: Any) -> Any:
    """y and s."""
    u, turned = xp.reshape(u, (1, 1, x.shape[-2])), xp.transpose(x, (0, 2, 1))

    def normalised(vector: Any) -> Any:
        return xp.may_store(xp.stop(vector / xp.maximum(xp.norm(vector), eps)))

    for _ in range(iterations):
        v = normalised(xp.matmul(u, x))
        u = normalised(xp.matmul(v, turned))
    s = xp.may_store(xp.sum(u * xp.may_store(xp.matmul(v, turned))))
    return xp.either(x / s, x * (1 / s)), xp.reshape(s, (1,))


# --- cases ----------------------------------------------------------------------------------------


def _rows(m: int, n: int, size: float = 1.0, **specials: float) -> Any:
    return with_specials(drawn(dy=(m, n), x=(m, n), x_size=size, g=(m,)), **specials)


WEIGHT_CASES = listed(
    "weight_norm",
    ("row_length", {"n": 17}, _rows(9, 17)),
    ("row_length", {"n": 768}, _rows(6, 768)),
    ("size", {"size": 1e-4}, _rows(9, 17, 1e-4)),
    ("axis", {"axis": 0}, drawn(dy=(9, 5), x=(9, 5), g=(5,)), {"axis": 0}),
    ("axes", {"axis": "1,2"}, drawn(dy=(5, 4, 3), x=(5, 4, 3), g=(5,)), {"axis": (1, 2)}),
    ("specials", {}, _rows(5, 6, x=float("nan"))),
    ("invariance", {"rows": 37}, _rows(37, 19)),
)  # fmt: skip


def _matrix(m: int, n: int, **size: float) -> Any:
    return drawn(dy=(m, n), x=(m, n), u=(m,), **size)


def _of_rank_one(rng: np.random.Generator) -> Any:
    return np.outer(rng.standard_normal(8), rng.standard_normal(5))


SPECTRAL_CASES = listed(
    "spectral_norm",
    ("shape", {"m": 16, "n": 24}, _matrix(16, 24)),
    ("shape", {"m": 128, "n": 64}, _matrix(128, 64)),
    ("iterations", {"n": 2}, _matrix(16, 24), {"n_power_iterations": 2}),
    ("size", {"size": 1e-3}, _matrix(16, 24, x_size=1e-3)),
    ("rank", {"rank": 1}, drawn(dy=(8, 5), x=_of_rank_one, u=(8,))),
)
