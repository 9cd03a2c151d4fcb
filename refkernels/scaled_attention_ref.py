"""Attention of operands of 8 bits with scales, certified.

    s_ij = scale descale_q descale_k (q_i . k_j),   y_i = descale_v sum_j p_ij v_j

with p, lse and what is added to s as in `attention_ref`. Kernels multiply e^(s_ij - m_i) with v by
instructions that take both in one format: they keep `offset` e^(s_ij - m_i) in float8, and the sum
of the weights in float32.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from refkernels.arguments import as_text
from refkernels.arithmetic.arrays import LOW
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.grids import grid
from refkernels.arithmetic.scalars import as_real
from refkernels.attention_ref import Attention, formulas, layout, mixtures
from refkernels.op import Direction
from refkernels.ops import Prepared, Sliced, formula_op
from refkernels.ops.cases import Arrays, listed
from refkernels.ops.domains import POSITIVE
from refkernels.ops.public import enclosures_of, public_names

_ABSENT = ("mask", "sinks", "alibi_slopes", "prefix")


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    wide = {
        name: a.astype(np.float32) if a is not None and a.dtype in LOW else a
        for name, a in inputs.items()
    }
    to = as_text(params["weights"], "weights")
    own, offset = grid(to or " "), as_real(params["offset"], "offset")
    if own.is_integer or not own.largest >= offset:
        raise ValueError(f"weights is {to!r}: it must be a format of floats that holds {offset:g}.")
    ready = layout.prepare({**dict.fromkeys(_ABSENT), **wide}, params, direction)
    kept = Format(own.name, own.p, own.emin, int(np.frexp(own.largest)[1]) - 1, None)
    scales = [a for n in layout.SCALES if (a := inputs.get(n)) is not None]
    rooted = ready.params["rooted"] and all((scale > 0).all() for scale in scales)
    settings = {**ready.params, "weights": (kept, offset), "rooted": rooted}
    return Prepared(ready.inputs, settings, ready.restore, ready.signature)


def _scaled(
    formula: Any, xp: Any, q: Any, k: Any, v: Any, scale: Any = None, **options: Any
) -> Any:
    """The formula of attention, with the scales."""
    of_q, of_k, of_v = (options.pop(name, None) for name in layout.SCALES)
    by = formulas.factor(xp, q, scale)
    for part in (part for part in (of_q, of_k) if part is not None):
        by = by * xp.reshape(part, (*part.shape, 1, 1))
    y, lse = formula(xp, q=q, k=k, v=v, scale=by, **options)
    return (y if of_v is None else y * xp.reshape(of_v, (*of_v.shape, 1, 1))), lse


def _low(
    leading: tuple[int, ...], *shape: int, heads: int = 0, size: float = 1.0, own: bool = False,
    kind: str = "float8_e4m3fn",
) -> Any:  # fmt: skip
    """Operands whose scores are of about `size`; `own`: each head of keys has its own scales."""
    m, n, d = shape
    of_keys = (*leading[:-1], heads or leading[-1])

    def build(rng: np.random.Generator, dtype: str) -> Arrays:
        drawn = (
            ((*leading, m, d), 0.05),
            ((*of_keys, n, d), 0.02 * size),
            ((*of_keys, n, d), 0.01),
        )
        arrays: Arrays = {}
        for name, (lengths, scale) in zip("qkv", drawn, strict=True):
            scales = scale * rng.uniform(0.5, 2.0, of_keys if own else ())
            arrays[f"descale_{name}"] = np.asarray(scales)
            arrays[name] = (rng.standard_normal(lengths) / scale).astype(getattr(ml_dtypes, kind))
        return arrays

    return build


OPS = (
    formula_op(
        "scaled_attention",
        "q[... m d]:low, k[... n d]:low, v[... n e]:low, descale_q[...]?, descale_k[...]?, "
        "descale_v[...]?, keep[... m n]?:bool, lengths[...]?:int, cu_seqlens_q[s]?:int, "
        "cu_seqlens_k[s]?:int, block_table[b t]?:int -> y[... m e], lse[... m]",
        coupled="d n",
        params={
            "scale": None, "causal": "none", "window": None, "softcap": None, "causal_block": None,
            "layout": "bhsd", "weights": "float8_e4m3fn", "offset": 256.0,
        },
        domains={"offset": POSITIVE},
        prepare=_prepare,
        forms={
            "deferred": partial(_scaled, formulas.deferred),
            "streaming": partial(_scaled, mixtures.streaming),
        },
        truth=Sliced(partial(_scaled, formulas.certified)),
        gradients=(),
        cases=listed(
            "scaled_attention",
            ("small", {"keys": 7}, _low((2, 3), 5, 7, 8)),
            ("length", {"keys": 200}, _low((1, 2), 9, 200, 16)),
            ("logits", {"size": 30}, _low((1, 2), 7, 33, 16, size=30.0)),
            ("heads", {"heads": 4, "key_heads": 2}, _low((2, 4), 5, 9, 8, heads=2, own=True)),
            ("causal", {"keys": 9}, _low((2, 2), 5, 9, 8), {"causal": "bottom_right"}),
            ("formats", {"of": "e5m2"}, _low((2, 2), 5, 9, 8, kind="float8_e5m2"),
             {"weights": "float8_e5m2"}),
            ("kept", {"weights": "bfloat16"}, _low((2, 2), 5, 9, 8), {"weights": "bfloat16"}),
            ("invariance", {"rows": 37}, _low((37, 1), 3, 7, 8, own=True)),
            directions=("forward",),
        ),
    ),
)  # fmt: skip
__all__ = ["OPS", *public_names(OPS)]
_enclosures = enclosures_of(OPS, Attention)


@_enclosures
def scaled_attention() -> None:
    """(y, lse) of attention: y = descale_v sum_j p_ij v_j, s = scale descale_q descale_k (q . k).

    q, k, v     float8_e4m3fn, float8_e5m2 or another format of at most 8 bits (of `ml_dtypes`, or
                torch's), float16, bfloat16, float32 or float64; shapes as in
                `attention_ref.attention`
    descale_*   one number, or one for each head of k, (batch, heads of k): FlashAttention 3's
                q_descale, k_descale, v_descale
    weights     the format in which a kernel may keep offset e^(s - m) to multiply it with v
    offset      256, FlashAttention 3's; 1 for kernels that keep e^(s - m) itself

    The bound is proven for the forms of attention with the weights kept so, not only in y's
    format, and their sum before they are: of e4m3, about 2^-4 sum_j p_ij |v_j|. Weights below half
    of the format's least number are 0, of e4m3 2^-10 / offset. Otherwise as attention.

    Raises TypeError for other dtypes; ValueError for shapes and params that do not fit.
    Sources: Shah et al. (2024), arXiv:2407.08608; Micikevicius et al. (2022), arXiv:2209.05433.
    """
