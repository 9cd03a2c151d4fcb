"""Scans whose state is a matrix, certified: linear attention with decays, the gated delta
rule, and the selective scan of Mamba 2.

    linear_attention   S_t = a_t S_(t-1) + k_t v_tᵀ,   y_t = scale S_tᵀ q_t
    gated_delta_rule   the same with u_t = b_t (v_t - a_t S_(t-1)ᵀ k_t) in the place of v_t
    selective_scan     linear attention with q = C, k = B, v = dt x and a = e^(dt A), plus D x

`formulas` computes them step by step and chunk by chunk; `OPS` lists the ops.
"""

from __future__ import annotations

from functools import partial

from refkernels.ops import formula_op
from refkernels.ops.public import enclosures_of, gradients_of, public_names
from refkernels.scan_ref import cases, formulas

OPS = (
    formula_op(
        "selective_scan",
        "x[... t h p], dt[... t h], A[h], B[... t g n], C[... t g n], D[h]?, dt_bias[h]?, "
        "initial_state[... h p n]? -> y[... t h p], state[... h p n]",
        "t n",
        params={"dt_softplus": False},
        prepare=formulas.prepare_selective,
        forms=formulas.SELECTIVE,
        faults=formulas.faults(partial(partial, formulas.selective)),
        cases=cases.selective_scan_cases,
    ),
    formula_op(
        "linear_attention",
        "q[... t d], k[... t d], v[... t e], g[... t]?, gk[... t d]?, "
        "initial_state[... d e]? -> y[... t e], state[... d e]",
        "t d",
        params={"scale": None},
        prepare=formulas.prepare,
        forms=formulas.FORMS,
        faults=formulas.faults(lambda scan: scan),
        cases=cases.linear_attention_cases,
    ),
    formula_op(
        "gated_delta_rule",
        "q[... t d], k[... t d], v[... t e], beta[... t], g[... t]?, "
        "initial_state[... d e]? -> y[... t e], state[... d e]",
        "t d",
        params={"scale": None},
        prepare=formulas.prepare,
        forms=formulas.FORMS,
        faults=formulas.faults(lambda scan: scan),
        cases=cases.DELTA,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosures = enclosures_of(OPS)


@_enclosures
def linear_attention() -> None:
    """S_t = a_t S_(t-1) + k_t v_tT, y_t = scale S_tT q_t, the rows of S decaying by a_t.

    q, k, v        (..., t, d), (..., t, d) and (..., t, e): float16, bfloat16, float32 or float64
                   (NumPy, DLPack, `__array__`). Heads are leading axes
    g, gk          (..., t), (..., t, d): the logarithms of a_t, of a step (RetNet, Mamba 2) and of
                   each channel of k (GLA); both are added. None: a_t = 1
    initial_state  (..., d, e), S before the first step; 0 by default
    scale          1 / sqrt(d) by default, exactly

    y has v's shape, state (..., d, e) is S after the last step. The bound is proven for one step
    after the other and for chunks of 64 steps, whose weights and state may be kept in the arrays'
    format, with sums in any order; where states grow, chunks may overflow
    before steps do. Raises TypeError for other dtypes, ValueError for shapes that do
    not fit and for more than 1024 steps. Sources: Katharopoulos et al. (2020),
    arXiv:2006.16236; Yang et al. (2024), arXiv:2312.06635, GLA.

    Gradient: (dq, dk, dv, dg, dgk, dinitial_state), the gradients of sum(dy y) by the inputs
    that are given: dq_t = scale S_t dy_t, the others by dS_t = scale q_t dy_tT + a_(t+1)
    dS_(t+1). The last state has no cotangent.
    """


@_enclosures
def gated_delta_rule() -> None:
    """S_t = a_t S_(t-1) + k_t u_tT, u_t = b_t (v_t - a_t S_(t-1)T k_t), y_t = scale S_tT q_t.

    beta    (..., t), b_t, how far the value that k_t reads is replaced; g: the logarithms of a_t

    The other arrays are those of `linear_attention`, and so is the bound; in chunks the u_t are
    solved for by forward substitution. It grows with the steps where keys are far from unit length:
    k and q are taken as they are. Otherwise as `linear_attention`. Source: Yang, Kautz and
    Hatamizadeh (2024), arXiv:2412.06464.

    Gradient: (dq, dk, dv, dbeta, dg, dinitial_state), the gradients of sum(dy y) by the inputs that
    are given: dv_t = b_t du_t, du_t = dS_tT k_t. The last state has no cotangent.
    """


@_enclosures
def selective_scan() -> None:
    """S_t = e^(s_t A) S_(t-1) + s_t x_t B_tT, y_t = S_t C_t + D x_t for each head, s_t = dt_t +
    dt_bias, or its softplus: Mamba 2.

    x              (..., t, h, p); dt (..., t, h); A, D and dt_bias (h,)
    B, C           (..., t, g, n): g groups of heads share them, head i those of group i g // h
    initial_state  (..., h, p, n), 0 by default

    y has x's shape, state (..., h, p, n) is S after the last step. The bound is that of
    `linear_attention`. Raises TypeError for other dtypes, ValueError for shapes that do not fit
    and for more than 1024 steps.
    Source: Dao and Gu (2024), arXiv:2405.21060.

    Gradient: (dx, ddt, dA, dB, dC, dD, ddt_bias, dinitial_state), the gradients of sum(dy y) by
    the inputs that are given: dC_t = S_tT dy_t, the others by dS_t = dy_t C_tT + e^(s_(t+1) A)
    dS_(t+1).
    """


__getattr__ = gradients_of(OPS, globals())
