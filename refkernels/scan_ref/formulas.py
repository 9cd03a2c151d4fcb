"""The formulas of scans with a matrix as their state: linear attention with decays.

    S_t = a_t S_(t-1) + k_t v_tᵀ,   y_t = scale S_tᵀ q_t,   a_t = e^(g_t)

The gated delta rule writes u_t = b_t (v_t - a_t S_(t-1)ᵀ k_t) in the place of v_t. `recurrent`
takes one step after the other. `chunked` computes a chunk of 64 steps by products of matrices, G
being the sums of g in the chunk and S the state before it:

    y_t = scale (e^(G_t) Sᵀ q_t + sum_(s <= t) e^(G_t - G_s) (q_t . k_s) v_s)

Time is the last axis but one of q, k and v.

Sources: Katharopoulos et al. (2020), arXiv:2006.16236; Yang et al. (2024), arXiv:2312.06635; Dao
and Gu (2024), arXiv:2405.21060.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.activation_ref.formulas import softplus
from refkernels.arithmetic.scalars import as_real
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared

CHUNK = 64
MOST = 1024  # steps, each of which is computed after the other in every context


def _check_steps(name: str, shape: tuple[int, ...], axis: int) -> None:
    if len(shape) >= -axis and shape[axis] > MOST:
        raise ValueError(f"{name} has shape {shape}, and a scan at most {MOST} steps.")


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """Raises ValueError for too many steps."""
    scale = params["scale"]
    _check_steps("q", inputs["q"].shape, -2)
    return Prepared(inputs, {"scale": None if scale is None else as_real(scale, "scale")})


def _turned(xp: Any, a: Any) -> Any:
    return xp.rearrange(lambda part: np.swapaxes(part, -1, -2), a)


def _column(xp: Any, a: Any) -> Any:
    return xp.reshape(a, (*a.shape, 1))


def _arranged(xp: Any, q: Any, scale: Any, g: Any = None, gk: Any = None) -> tuple[Any, Any]:
    """q with its scale; the logarithms of decays as (..., t, 1) or (..., t, d), None if absent."""
    q = q * (1 / xp.sqrt(xp.number(max(q.shape[-1], 1))) if scale is None else scale)
    log_decay = gk if g is None else _column(xp, g)
    return q, log_decay if g is None or gk is None else log_decay + gk


# --- one step after the other ---------------------------------------------------------------------


def recurrent(
    xp: Any, q: Any, k: Any, v: Any, scale: Any = None, initial_state: Any = None,
    beta: Any = None, decay_after: bool = False, read_first: bool = False, format: str = "",
    **gates: Any,
) -> Any:  # fmt: skip
    """y and the last state. The options are wrong ways: the new term decays too; y_t is read before
    step t; the state is kept in a format."""
    if not q.shape[-2]:
        return v, xp.matmul(_turned(xp, k), v) if initial_state is None else initial_state
    q, log_decay = _arranged(xp, q, scale, **gates)
    decay = None if log_decay is None else xp.exp(log_decay)
    state, outputs = initial_state, []
    for t in range(q.shape[-2]):
        at = partial(xp.take, index=np.array([t]), axis=-2)
        before, value = state, at(v)
        kept = None if decay is None else _turned(xp, at(decay))
        if kept is not None and state is not None and not decay_after:
            state = kept * state
        if beta is not None:
            known = value if state is None else value - xp.matmul(at(k), state)
            value = at(_column(xp, beta)) * known
        added = _turned(xp, at(k)) * value
        state = added if state is None else state + added
        if kept is not None and decay_after:
            state = kept * state
        state = xp.narrow(state, format) if format else state
        if read_first:
            outputs.append(value * 0 if before is None else xp.matmul(at(q), before))
        else:
            outputs.append(xp.matmul(at(q), state))
    return xp.concatenate(outputs, axis=-2), state


# --- chunk by chunk -------------------------------------------------------------------------------


def chunked(
    xp: Any, q: Any, k: Any, v: Any, scale: Any = None, initial_state: Any = None,
    beta: Any = None, carried: bool = True, **gates: Any,
) -> Any:  # fmt: skip
    """`carried` False is a wrong way: every chunk begins with an empty state."""
    if not q.shape[-2]:
        return recurrent(xp, q, k, v, scale, initial_state, **gates)
    beta = None if beta is None else _column(xp, beta)
    q, log_decay = _arranged(xp, q, scale, **gates)
    state, outputs, steps = initial_state, [], q.shape[-2]
    for start in range(0, steps, CHUNK):
        places = np.arange(start, min(start + CHUNK, steps))
        arrays = (q, k, v, log_decay, beta)
        parts = (None if a is None else xp.take(a, places, axis=-2) for a in arrays)
        y, state = _chunk(xp, state if carried or not start else None, *parts)
        outputs.append(y)
    return xp.concatenate(outputs, axis=-2), state


def _chunk(xp: Any, state: Any, q: Any, k: Any, v: Any, log_decay: Any, beta: Any) -> Any:
    total = None if log_decay is None else xp.cumsum(log_decay, axis=-2)
    v = v if beta is None else _written(xp, state, k, v, total, beta)
    y = xp.matmul(xp.store(_weights(xp, q, k, total)), v)
    if total is not None:
        last = xp.take(total, np.array([q.shape[-2] - 1]), axis=-2)
        q, k = q * xp.exp(total), k * xp.exp(last - total)
    added = xp.matmul(_turned(xp, k), v)
    if state is None:
        return y, added
    y = y + xp.matmul(q, xp.store(state))
    return y, added + (state if total is None else _turned(xp, xp.exp(last)) * state)


def _written(xp: Any, state: Any, k: Any, v: Any, total: Any, beta: Any) -> Any:
    """The u of a chunk, by forward substitution: each needs all before it."""
    if state is not None:
        v = v - xp.matmul(k if total is None else k * xp.exp(total), xp.store(state))
    v, weights = beta * v, xp.store(beta * _weights(xp, k, k, total))
    rows = [xp.take(v, np.array([0]), axis=-2)]
    for t in range(1, v.shape[-2]):
        before = xp.take(xp.take(weights, np.array([t]), axis=-2), np.arange(t), axis=-1)
        known = xp.matmul(before, xp.concatenate(rows, axis=-2))
        rows.append(xp.take(v, np.array([t]), axis=-2) - known)
    return xp.concatenate(rows, axis=-2)


def _weights(xp: Any, q: Any, k: Any, total: Any) -> Any:
    """e^(G_t - G_s) (q_t . k_s) where s <= t, 0 elsewhere."""
    seen, nothing = np.tri(q.shape[-2], dtype=bool), xp.number(0)
    if total is None or total.shape[-1] == 1:
        products = xp.matmul(q, _turned(xp, k))
        if total is not None:
            products = products * xp.exp(xp.where(seen, total - _turned(xp, total), nothing))
        return xp.where(seen, products, nothing)
    *lead, n, d = q.shape
    of_t, of_s = (*lead, n, 1, d), (*lead, 1, n, d)
    apart = xp.reshape(total, of_t) - xp.reshape(total, of_s)
    decay = xp.exp(xp.where(seen[..., None], apart, nothing))
    products = xp.sum(xp.reshape(q, of_t) * xp.reshape(k, of_s) * decay)
    return xp.where(seen, xp.reshape(products, (*lead, n, n)), nothing)


FORMS = {"recurrent": recurrent, "chunked": chunked}


# --- Mamba 2 --------------------------------------------------------------------------------------


def prepare_selective(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """Raises ValueError for too many steps, and where the groups do not divide the heads."""
    x, of = inputs["x"].shape, inputs["B"].shape
    _check_steps("x", x, -3)
    if len(x) < 3 or len(of) < 3 or x[-2] % max(of[-2], 1) or (x[-2] and not of[-2]):
        raise ValueError(
            f"x has shape {x} and B {of}: they must be x[... t h p] and B[... t g n], with h a "
            "multiple of g."
        )
    return Prepared(inputs, {"dt_softplus": params["dt_softplus"]})


def selective(
    scan: Any, xp: Any, x: Any, dt: Any, A: Any, B: Any, C: Any, D: Any = None,
    dt_bias: Any = None, initial_state: Any = None, dt_softplus: bool = False,
) -> Any:  # fmt: skip
    """`scan`: the formula of the recurrence with q = C, k = B, v = dt x and g = dt A."""
    step = dt if dt_bias is None else dt + dt_bias
    step = softplus(xp, step) if dt_softplus else step
    heads = np.arange(x.shape[-2]) * B.shape[-2] // max(x.shape[-2], 1)
    q, k = (_heads_first(xp, xp.take(a, heads, axis=-2)) for a in (C, B))
    rates = _turned(xp, step * A)
    state = None if initial_state is None else _turned(xp, initial_state)
    v = _heads_first(xp, x * _column(xp, step))
    y, state = scan(xp, q=q, k=k, v=v, scale=xp.number(1), initial_state=state, g=rates)
    y = _heads_first(xp, y)
    return y if D is None else y + _column(xp, D) * x, _turned(xp, state)


def _heads_first(xp: Any, a: Any) -> Any:
    """With time and heads exchanged."""
    return xp.rearrange(lambda part: np.swapaxes(part, -2, -3), a)


SELECTIVE = {name: partial(selective, form) for name, form in FORMS.items()}


# --- faults ---------------------------------------------------------------------------------------


WRONG: dict[str, Any] = {
    "decay_after_update": partial(recurrent, decay_after=True),
    "read_before_update": partial(recurrent, read_first=True),
    "chunks_start_empty": partial(chunked, carried=False),
}


def faults(of: Any) -> tuple[Fault, ...]:
    """The wrong scans of an op. `of` makes the op's formula of a scan."""
    narrow = (
        Fault(
            "narrow_state",
            of(partial(recurrent, format=format)),
            unstable=True,
            derived=True,
            details={"format": format},
        )
        for format in ("bfloat16", "float16")
    )
    return *(Fault(cause, of(scan), derived=True) for cause, scan in WRONG.items()), *narrow
