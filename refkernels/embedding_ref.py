"""Rows of a table by their indices, and the gradient of the table, certified.

    y_i = weight[indices_i]          dweight_v = Σ dy_i over the i with indices_i = v

and dweight_v = 0 for v = padding_idx: that row gets no gradient. A kernel may add the rows of one
index in any order, as in any other sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.op import Case, Direction
from refkernels.ops import Fault, Prepared, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.letters import Signature
from refkernels.ops.public import enclosure_of, gradients_of, public_names

_LOOKUP = Signature.parse("rows[... d], padding[...]:bool -> y[... d]")
_GRADIENT = Signature.parse(
    "dy[... d], weight[v d], indices[...]:int, kept[...]:bool -> dweight[v d]"
)


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """Forward, the rows are looked up here: nothing is computed. Backward, only the table's shape
    matters."""
    weight, indices, padding = inputs["weight"], inputs["indices"], params["padding_idx"]
    if weight.ndim != 2:
        raise ValueError(f"weight has shape {weight.shape}: it must be (v, d).")
    v = len(weight)
    if indices.size and not (indices.min() >= 0 and indices.max() < v):
        wrong = next(int(i) for i in indices.flat if not 0 <= i < v)
        raise ValueError(f"indices has {wrong}, and weight has the rows 0 to {v - 1}.")
    if padding is not None and not -v <= as_count(padding, "padding_idx", least=-(2**63)) < v:
        raise ValueError(f"padding_idx is {padding}, and weight has {v} rows.")
    padded = indices == (None if padding is None else padding % max(v, 1))
    if direction == "forward":
        arrays = {"rows": weight[indices], "padding": np.asarray(padded)}
        return Prepared(arrays, {}, signature=_LOOKUP)
    marks = {"kept": np.broadcast_to(~padded, indices.shape)}
    return Prepared({**inputs, **marks}, {}, signature=_GRADIENT)


def _lookup(
    xp: Any, rows: Any = None, weight: Any = None, indices: Any = None, **_: Any
) -> Any:  # fmt: skip
    return rows if rows is not None else xp.take(xp.reshape(weight, weight.shape[1:]), indices)


def _zeroed(xp: Any, rows: Any, padding: Any) -> Any:
    return xp.where(padding, xp.number(0), rows)


def _scatter(xp: Any, dy: Any, weight: Any, indices: Any, kept: Any = None) -> Any:
    rows = dy if kept is None else xp.where(kept[:, None], dy, xp.number(0))
    return xp.reshape(xp.scatter_add(rows, indices, weight.shape[-2]), weight.shape)


def _updated(xp: Any, kept: Any, **arrays: Any) -> Any:
    return _scatter(xp, **arrays)


_FAULTS = (
    Fault("padding_zeroed", _zeroed),
    Fault("padding_updated", backward=_updated),
)


def cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "embedding")
    return [
        make("lookup", {"rows": 50, "d": 17}, _drawn((4, 8), 50, 17)),
        make("repeated", {"times": 1000}, _drawn((1000,), 1, 3)),
        make("repeated", {"times": 7}, _drawn((4, 8), 5, 3)),
        make("repeated", {"times": 40, "of": "cancelling"}, _drawn((2, 40), 2, 8, 1e4)),
        make("padding", {"padding_idx": 1}, _drawn((4, 8), 5, 3), {"padding_idx": 1}),
        make("padding", {"padding_idx": -1}, _drawn((4, 8), 5, 3), {"padding_idx": -1}),
        make("table", {"rows": 30522, "d": 8}, _drawn((64,), 30522, 8), dtypes=("float32",)),
        make("invariance", {"rows": 37, "d": 8}, _drawn((37,), 50, 8)),
    ]


def _drawn(
    leading: tuple[int, ...], v: int, d: int, offset: float = 0.0
) -> Callable[[np.random.Generator, str], Arrays]:
    def build(rng: np.random.Generator, dtype: str) -> Arrays:
        dy = offset * rng.choice([-1.0, 1.0], (*leading, 1)) + rng.standard_normal((*leading, d))
        return {
            "dy": dy,
            "weight": rng.standard_normal((v, d)),
            "indices": rng.integers(0, v, leading),
        }

    return build


OPS = (
    formula_op(
        "embedding",
        "weight[v d], indices[...]:int -> y[... d]",
        forms={"lookup": _lookup},
        backward={"scatter_add": _scatter},
        scatter=("weight", "indices"),
        params={"padding_idx": None},
        prepare=_prepare,
        faults=_FAULTS,
        cases=cases,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def embedding() -> None:
    """y_i = weight[indices_i], exactly; y has the shape of indices followed by d.

    weight        (v, d), float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    indices       integers, 0 <= index < v, of any shape
    padding_idx   the row that gets no gradient; forward, it is a row like any other

    Raises TypeError for other dtypes, ValueError for an index outside weight.
    Source: PyTorch documentation, `torch.nn.Embedding`.

    Gradient: dweight_v = Σ dy_i over the i with indices_i = v, 0 for v = padding_idx; weight's
    shape. dy has y's shape. The bound of an element that sums k
    numbers is (k - 1) u Σ |dy_i|, proven for sums in any order. Source: Jeannerod and Rump
    (2013), doi:10.1137/120894488.
    """


__getattr__ = gradients_of(OPS, globals())
