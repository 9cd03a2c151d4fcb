"""Mixtures of experts, certified: the router and its losses, products by expert, and their sum.

    router                w_i = s_i of the k chosen experts, else 0
    grouped_matmul        c_m = a_m b[experts_m]
    combine_experts       y_t = sum_j weights_tj x[rows_tj]
    load_balancing_loss   n sum_i f_i P_i          router_z_loss   the mean of logsumexp(logits)²

Tokens are dispatched to experts by `embedding_ref.embedding(tokens, token_of_row)`: a row of each
choice, exactly, and the sum of the rows' gradients for each token.
"""

from __future__ import annotations

from refkernels.experts_ref import cases, formulas
from refkernels.ops import formula_op
from refkernels.ops.public import enclosure_of, enclosures_of, gradients_of, public_names

OPS = (
    formula_op(
        "router",
        "logits[... n], bias[n]? -> weights[... n]",
        "n",
        params=formulas.ROUTING,
        prepare=formulas.prepare,
        forms=formulas.ROUTER,
        gradients=("logits",),
        faults=formulas.WRONG,
        cases=cases.ROUTER,
    ),
    formula_op(
        "grouped_matmul",
        "a[... k], b[g k n], experts[...]:int -> c[... n]",
        prepare=formulas.indexed("experts", "b"),
        forms={"by_expert": formulas.grouped},
        cases=cases.GROUPED,
    ),
    formula_op(
        "combine_experts",
        "x[r d], rows[... k]:int, weights[... k]? -> y[... d]",
        prepare=formulas.indexed("rows", "x"),
        forms={"weighted": formulas.combined},
        cases=cases.COMBINE,
    ),
    formula_op(
        "load_balancing_loss",
        "logits[t n] -> loss[]",
        "t n",
        params={"k": 1, "scale": 1.0},
        prepare=formulas.prepare_loss,
        forms=formulas.BALANCE,
        cases=cases.BALANCE,
    ),
    formula_op(
        "router_z_loss",
        "logits[t n] -> loss[]",
        "t n",
        params={"scale": 1.0},
        prepare=formulas.prepare_loss,
        forms=formulas.Z_LOSS,
        backward={"mixture": formulas.z_loss_gradient},
        cases=cases.Z_LOSS,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)
_enclosures = enclosures_of(OPS)


@_enclosure
def router() -> None:
    """weights_i = scale s_i for the k experts with the largest s_i + bias_i, 0 for the others;
    s = softmax(logits) or sigmoid(logits).

    logits       (..., n): float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    bias         (n,): is added where experts are chosen, and not to their weights (DeepSeek-V3)
    groups       n / groups experts each; those of the best `groups_kept`, all by default, may be
                 chosen. A group's score is the sum of its `best` largest s_i + bias_i
    renormalise  weights are divided by their sum (Mixtral, DeepSeek-V3)
    certify      the question (`refkernels.Enclosure`)

    A kernel's (weights, indices) are compared after it has scattered them. Of equal scores the
    first are chosen. The bound is proven for a choice by logits or by rounded scores: where these
    may fall out otherwise, it contains 0 and s_i, and neither is wrong.

    Raises TypeError for other dtypes, ValueError for counts that do not fit n. With NaN or +inf
    among a token's logits, which have no order, the first k experts are chosen.
    Sources: Jiang et al. (2024), arXiv:2401.04088; DeepSeek-AI (2024), arXiv:2412.19437.

    Gradient: dlogits = the sum of dweights_i dweights_i / dlogits over the chosen experts:
    which they are has no derivative.
    """


@_enclosure
def grouped_matmul() -> None:
    """c_m = a_m b[experts_m], a grouped GEMM.

    a        (..., k); b (g, k, n), a matrix for each expert
    experts  (...), the expert of each row; -1: none, c_m = 0. For rows that are sorted by expert,
             np.repeat(np.arange(g), sizes), or np.searchsorted(ends, np.arange(m), "right")

    The bound is that of `matmul_ref.matmul`, row by row, sums in any order. Raises ValueError for
    shapes that do not fit, and for an expert that is not there. Otherwise as `router`.
    Source: Gale et al. (2022), arXiv:2211.15841.

    Gradient: (da, db): da_m = dc_m b[experts_m]T, db_e the sum of a_mT dc_m over its rows.
    """


@_enclosure
def combine_experts() -> None:
    """y_t = sum_j weights_tj x[rows_tj]: each token's sum of its experts' answers.

    x        (r, d), the experts' answers in any order
    rows     (..., k), where a token's k answers lie; -1: it has none (a dropped token)
    weights  (..., k), ones by default; y has the leading axes of rows, and d

    The bound is proven for the products kept in the arrays' format or not, sums in any order; not
    for partial sums that are kept in 16 bits. Raises ValueError for a row that is not there.
    Otherwise as `router`. Source: Shazeer et al. (2017), arXiv:1701.06538.

    Gradient: (dx, dweights): dx_r the sum of weights_tj dy_t over its tokens, dweights_tj =
    dy_t . x[rows_tj].
    """


@_enclosure
def load_balancing_loss() -> None:
    """loss = scale n sum_i f_i P_i, f_i being the share of the tokens that have expert i among
    their k largest logits, and P_i the mean of softmax(logits)_i over the tokens.

    logits   (..., n), a token for each of the leading axes' indices
    scale    1 as in Mixtral, where the f_i add up to k; 1 / k where they shall add up to 1

    The bound is that of `router`'s choice, with sums in any order. Raises ValueError for a k that
    does not fit. Of no tokens the loss is NaN. Otherwise as `router`. Source: Fedus et al. (2022),
    arXiv:2101.03961, equation 4.

    Gradient: dlogits = dloss scale n sum_i f_i dP_i / dlogits; f has no derivative.
    """


@_enclosure
def router_z_loss() -> None:
    """loss = scale times the mean over the tokens of logsumexp(logits)².

    The bound is that of `softmax_ref.logsumexp`, sums in any order. Raises ValueError for logits
    without an axis. Otherwise as `load_balancing_loss`. Source: Zoph et al. (2022),
    arXiv:2202.08906, equation 5.

    Gradient: dlogits = 2 dloss scale / tokens logsumexp(logits) softmax(logits).
    """


__getattr__ = gradients_of(OPS, globals())
