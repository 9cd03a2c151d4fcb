"""Scaled dot-product attention and rotary position embedding, with their gradients, certified.

    attention(q, k, v, mask=None, keep=None, lengths=None, sinks=None, ...)  -> Enclosure
    attention_backward(dy, q, k, v, ...)                        -> AttentionBackward(dq, dk, dv)
    rotary(x, position, base=10000.0, layout="half", dim=None)  -> Enclosure
    rotary_backward(dy, x, position, ...)                       -> Enclosure

`formulas` and `mixtures` hold the formulas of attention, `layout` arranges its arrays for them,
`faults` lists the wrong ways to compute it; `rotary` has the formulas of rotary embedding. `OPS`
lists the ops.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from refkernels.arguments import TextOrNumbers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.attention_ref import formulas, layout, mixtures
from refkernels.attention_ref import rotary as rotation
from refkernels.attention_ref.cases import attention_cases, rotary_cases
from refkernels.attention_ref.faults import CONVENTIONS, FAULTS
from refkernels.ops import Sliced, formula_op
from refkernels.ops.domains import POSITIVE
from refkernels.ops.public import enclosure_of, enclosures_of, gradients_of, public_names

ATTENTION = formula_op(
    "attention",
    "q[... m d], k[... n d], v[... n e], mask[... m n]?, keep[... m n]?:bool, lengths[...]?:int, "
    "sinks[...]?, alibi_slopes[...]?, prefix[...]?:int, cu_seqlens_q[s]?:int, "
    "cu_seqlens_k[s]?:int, block_table[b t]?:int -> y[... m e], lse[... m]",
    coupled="d n",
    params={
        "scale": None,
        "causal": "none",
        "window": None,
        "softcap": None,
        "causal_block": None,
        "layout": "bhsd",
    },
    prepare=layout.prepare,
    forms={
        "plain": formulas.plain,
        "deferred": formulas.deferred,
        "stored": formulas.stored,
        "streaming": mixtures.streaming,
        "materialised": mixtures.materialised,
    },
    backward={
        "composed": formulas.composed,
        "recomputed": formulas.recomputed,
        "streaming": mixtures.streaming_gradients,
        "materialised": mixtures.materialised_gradients,
    },
    truth=Sliced(formulas.certified),
    backward_truth=Sliced(formulas.certified_gradients),
    gradients=("q", "k", "v"),
    faults=FAULTS,
    conventions=CONVENTIONS,
    cases=attention_cases,
)
ROTARY = formula_op(
    "rotary",
    "x[... d], position[...]:int -> y[... d]",
    coupled="d",
    params={"base": 10000.0, "layout": "half", "dim": None, "scaling": TextOrNumbers("none")},
    domains={"base": POSITIVE},
    prepare=rotation.prepare,
    forms=rotation.FORMS,
    backward=rotation.BACKWARD,
    gradients=("x",),
    faults=rotation.FAULTS,
    cases=rotary_cases,
)
OPS = (ATTENTION, ROTARY)
__all__ = ["OPS", "Attention", "attention", *public_names(OPS)]
_enclosure = enclosure_of(OPS)
_enclosures = enclosures_of(OPS)


class Attention(NamedTuple):
    """y has q's leading axes and queries, and v's last axis; lse q's leading axes and queries."""

    y: Enclosure
    lse: Enclosure


def attention(
    q: Any, k: Any, v: Any, mask: Any = None, keep: Any = None, lengths: Any = None,
    sinks: Any = None, alibi_slopes: Any = None, prefix: Any = None, cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None, block_table: Any = None, *, scale: float | None = None,
    causal: str = "none", window: tuple[int, int] | None = None, softcap: float | None = None,
    causal_block: int | None = None, layout: str = "bhsd",
    return_lse: bool = False, certify: Certify = "enclosure",
) -> Any:  # fmt: skip
    """y_i = sum_j p_ij v_j, p_ij = e^(s_ij - lse_i), lse_i = log(sum_j e^(s_ij) + e^(sink)),
    s_ij = c(scale (q_i . k_j)) - slope |i - j| + mask_ij, all sums over the keys that take part.

    q, k, v     (..., queries, d), (..., keys, d) and (..., keys, e): float16, bfloat16, float32 or
                float64 (NumPy, DLPack, `__array__`). The leading axes are the same, except that
                the last of them, q's heads, may be g times k's: head h of q then meets head h // g
                (grouped queries)
    mask        is added to the scores; -inf: that key takes no part. It broadcasts to
                (..., queries, keys), whose leading axes are q's
    keep        truth values that broadcast in the same way; False: that key takes no part
    lengths     integers that broadcast to k's leading axes, (batch, 1) for one length per sequence:
                the keys before that index take part
    sinks       one number for each head of q, or of a shape that broadcasts to q's leading axes: a
                score that has no value (gpt-oss); none by default. It gets no gradient here
    alibi_slopes    arranged as sinks: a head's slope, where i is the query's position (ALiBi)
    prefix      arranged as lengths: keys before that index are seen whatever `causal` says
    cu_seqlens_q, cu_seqlens_k    packed sequences, (sequences + 1,), from 0: sequence s has the
                queries, and keys, from cu_seqlens[s] to cu_seqlens[s + 1]; positions count from
                there. q is (heads, queries, d), and prefix has one number for each sequence
    block_table (sequences, t): k and v are pages, (pages, heads, size, d), and sequence s has the
                keys of the pages block_table[s], up to lengths[s]. q is (sequences, heads, queries,
                d), or packed with cu_seqlens_q alone. Forward only
    scale       1 / sqrt(d) by default, exactly
    causal      "top_left": query i sees keys j <= i (PyTorch's is_causal). "bottom_right":
                j <= i + keys - queries (FlashAttention's from 2.1 on), keys and queries being those
                of its sequence where they are packed or paged. Else "none"
    causal_block    a query sees to the end of its own block of so many keys
    window      (left, right): a query sees keys from left before its own position to right after
                it, and none beyond it if causal; -1 for no limit. Query i's position is i, or
                i + keys - queries unless causal is "top_left" (FlashAttention's window_size)
    softcap     c(s) = softcap tanh(s / softcap) (Gemma 2); by default c(s) = s
    layout      "bhsd"; or "bshd": q, k, v, y and their gradients have the heads after the queries
                or keys, (batch, queries, heads, d) or, packed, (queries, heads, d)
    return_lse  True: y and lse, an `Attention`; False: y alone

    A step of decoding is one query. A query for which no key takes part has y = 0, the empty sum,
    and no gradient, as in PyTorch from 2.5 on and in FlashAttention; a kernel that evaluates the
    formula itself returns 0 / 0, NaN. NaN and infinite inputs give what IEEE 754 arithmetic gives
    by the formula, in which a key that takes no part has p = 0: its NaN in v makes y NaN. A sink
    counts as a key of zeros; keys beyond the length of a paged sequence are none.

    The bound is elementwise in `OPS`. It is proven for the forms `plain`, `deferred`, (e v) / S,
    and `streaming` (online softmax in blocks of any size, p or e kept in q's format), and for
    `stored` and `materialised`, which keep the scores in q's format too: in bfloat16 that alone
    allows a relative error of 2^-9 |s|. Sums in any order; e by exp or exp2; the scale applied to
    the product, to q, or its root to both.

    Raises TypeError for other dtypes; ValueError for shapes and params that do not fit, and lengths
    that k does not have.
    Sources: Vaswani et al. (2017), arXiv:1706.03762; Ainslie et al. (2023), arXiv:2305.13245;
    Gemma Team (2024), arXiv:2408.00118, softcap; OpenAI (2025), arXiv:2508.10925, sinks; Press et
    al. (2022), arXiv:2108.12409, ALiBi; Kwon et al. (2023), arXiv:2309.06180, pages.
    """
    arguments = {name: given for name, given in locals().items() if name != "return_lse"}
    answer = Attention(**ATTENTION.ask(arguments))
    return answer if return_lse else answer.y


@_enclosures
def attention_backward() -> None:
    """dv = pT dy, dq = scale ds k, dk = scale dsT q, with ds = p (dp - D) c', dp = dy vT and
    D_i = sum_j p_ij dp_ij; c' is 1, or 1 - tanh(s / softcap)^2. With grouped heads, dk and dv sum
    over each group.

    dy has y's shape; otherwise as `attention`. mask and slopes get no gradient here. The bound
    allows p kept from the forward pass or recomputed from the log-sum-exp, and D computed from y.
    """


@_enclosure
def rotary() -> None:
    """(y_a, y_b) = (x_a cos t - x_b sin t, x_b cos t + x_a sin t), t = position base^(-2 i / dim),
    for the pairs i = 0 ... dim / 2 - 1 of x's last axis; y has x's shape.

    x           float16, bfloat16, float32 or float64, of one axis or more
    position    integers that broadcast against x's leading axes
    layout      which numbers are pair i: "half", a = i and b = i + dim / 2 (GPT-NeoX, Llama);
                "interleaved", 2 i and 2 i + 1 (GPT-J)
    dim         how many elements of the last axis, from the first on, are rotated: all by default.
                The others stay unchanged
    scaling     the dict `rope_scaling` of Hugging Face's models, or its JSON, with rope_type
                "linear", "llama3" or "yarn": the frequencies are then those of
                `attention_ref.scaling`, and YaRN multiplies cosine and sine by its attention_factor

    The angle is exact: cosine and sine are those of the real number t. A kernel in float32 or 16
    bits computes its angles in float32, and its bound grows by about position base^(-2 i / dim)
    2^-22 |x|; cosine, sine and the products with x may be kept in x's format.

    Raises TypeError for other dtypes, ValueError for shapes and params that do not fit.
    Source: Su et al. (2021), arXiv:2104.09864.

    Gradient: (dx_a, dx_b) = (dy_a cos t + dy_b sin t, dy_b cos t - dy_a sin t): dy rotated by
    -t. dy has x's shape.
    """


__getattr__ = gradients_of(OPS, globals())
