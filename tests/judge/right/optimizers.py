"""Right optimizer steps: orders of operations, fused steps and a wider format, for whole arrays and
for parts of them; LAMB's norms by every way of `sum`."""

import adamw as parts
import ml_dtypes
import numpy as np
from _ways import in_kind as _k
from _ways import kernels, with_totals
from sum import TOTALS
from sum import _scaled_norm as _norm


def _coupled(grad, param, decay):
    return grad + _k(grad, decay) * param if decay else grad


def _coupled_fused(grad, param, decay):
    return parts._fused(_k(grad, decay), param, grad) if decay else grad


# --- sgd and momentum ---------------------------------------------------------------------------


def _sgd(blend, couple, ahead):
    def sgd(
        param, grad, buf=None, lr=0.01, momentum=0.9, weight_decay=0.0, nesterov=False,
        dampening=0.0, step=1,
    ):  # fmt: skip
        g = couple(grad, param, weight_decay)
        if buf is None:
            return param - _k(param, lr) * g, None
        new = g if step == 1 else blend(buf, g, momentum, 1 - dampening)
        return (ahead(param, g, new, lr, momentum) if nesterov else param - _k(g, lr) * new), new

    return sgd


def _blend(buf, g, momentum, share):
    return _k(g, momentum) * buf + (g if share == 1 else _k(g, share) * g)


def _blend_fused(buf, g, momentum, share):
    return parts._fused(_k(g, momentum), buf, g if share == 1 else _k(g, share) * g)


def _ahead(param, g, new, lr, momentum):
    return param - _k(g, lr) * (g + _k(g, momentum) * new)


def _ahead_apart(param, g, new, lr, momentum):
    return param - _k(g, lr) * g - _k(g, lr) * _k(g, momentum) * new


def _without_step(sgd):
    def momentum(
        param, grad, buf, lr=0.01, momentum=0.9, weight_decay=0.0, nesterov=False
    ):  # fmt: skip
        return sgd(param, grad, buf, lr, momentum, weight_decay, nesterov, 0.0, 2)

    return momentum


_SGD = {
    "plain": _sgd(_blend, _coupled, _ahead), "fused": _sgd(_blend_fused, _coupled_fused, _ahead),
    "apart": _sgd(_blend, _coupled, _ahead_apart),
}  # fmt: skip


# --- adam and its kin ---------------------------------------------------------------------------


def _adam(blend, squares, update, couple):
    def adam(
        param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0,
        step=1,
    ):  # fmt: skip
        given = {"param": param, "grad": couple(grad, param, weight_decay), "m": m, "v": v}
        given |= {"vmax": vmax, "lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps}
        given |= {"weight_decay": 0.0, "step": step}
        return parts._stepped(given, blend, squares, update, lambda param, taken, _: param - taken)

    return adam


_ADAM = {
    "torch": _adam(parts._moved, parts._scaled, parts._torch, _coupled),
    "paddle": _adam(parts._weighted, parts._squared, parts._paddle, _coupled),
    "textbook": _adam(parts._weighted, parts._squares_moved, parts._textbook, _coupled_fused),
    "fused": _adam(parts._moved_fused, parts._scaled_fused, parts._divided_last, _coupled),
}


def _lamb(
    total, param, grad, m, v, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.01, step=1
):
    new_m, new_v = parts._moved(m, grad, beta1), parts._squared(v, grad, beta2)
    c1, c2 = 1 - beta1**step, 1 - beta2**step
    r = (new_m / _k(m, c1)) / (np.sqrt(new_v / _k(m, c2)) + _k(m, eps))
    u = _coupled(r, param, weight_decay)
    norms = [_norm(total, a.reshape(-1)) for a in (param, u)]
    whole = norms[0] > 0 and norms[1] > 0
    scale = norms[0] / norms[1] if whole or np.isnan(norms).any() else _k(m, 1)
    return param - _k(m, lr) * scale * u, new_m, new_v


def _adafactor(
    total, param, grad, row, col, lr=0.01, beta2_decay=-0.8, eps1=1e-7, eps2=1e-3, d=1.0,
    weight_decay=0.0, step=1,
):  # fmt: skip
    (m, n), b = param.shape, step**beta2_decay
    squares = grad * grad
    new_row = row + _k(row, b) * (total(squares) / _k(row, n) - row)
    new_col = col + _k(col, b) * (total(np.ascontiguousarray(squares.T)) / _k(col, m) - col)
    mean = np.maximum(total(new_row) / _k(row, m), _k(row, eps1))
    v = np.maximum(new_row[:, None] * new_col / mean, _k(row, eps1**2))
    u = grad / np.sqrt(v)
    sizes = [_norm(total, a.reshape(-1)) / np.sqrt(_k(a, m * n)) for a in (param, u)]
    rate = np.maximum(_k(row, eps2), sizes[0]) * _k(row, min(lr, step**-0.5))
    limit = np.maximum(_k(row, 1), sizes[1] / _k(row, d))
    kept = param * _k(param, 1 - lr * weight_decay) if weight_decay else param
    return kept - rate / limit * u, new_row, new_col


def _narrow_step(total_of, new_of):
    """Right in the arithmetic of the arrays' format, or in binary64."""

    def narrow_step(param, update, comp=None, draws=None, to="bfloat16"):
        total = update if comp is None else total_of(update, comp)
        new = new_of(param, total, draws, np.dtype(getattr(ml_dtypes, to, to)))
        return new, None if comp is None else total - (new - param)

    return narrow_step


def _rounded(param, total, draws, kind):
    moved = param.astype(np.float64) + total
    largest = float(ml_dtypes.finfo(kind).max)
    near = np.clip(moved, -largest, largest).astype(kind)
    if draws is None:
        return near.astype(param.dtype)
    ends = [np.nextafter(near, kind.type(s * largest)).astype(np.float64) for s in (-1, 1)]
    near = near.astype(np.float64)
    below, above = np.where(near <= moved, near, ends[0]), np.where(near >= moved, near, ends[1])
    up = draws.astype(np.float64) * (above - below) < moved - below
    return np.where(up, above, below).astype(param.dtype)


# --- muon, soap: by products of the other side --------------------------------------------------


def _muon(
    total, param, grad, buf, lr=1e-3, momentum=0.95, weight_decay=0.1, nesterov=True, ns_a=3.4445,
    ns_b=-4.775, ns_c=2.0315, eps=1e-7, ns_steps=5, scale="original",
):  # fmt: skip
    buf = _weighted(buf, grad, momentum)
    x = _weighted(buf, grad, momentum) if nesterov else buf
    x = x / np.maximum(_norm(total, x.reshape(-1)), _k(x, eps))
    for _ in range(ns_steps):
        gram = _product(total, x.T, x.T)
        factor = _k(x, ns_b) * gram + _k(x, ns_c) * _product(total, gram, gram)
        x = _k(x, ns_a) * x + _product(total, x, factor)
    m, n = param.shape
    rate = lr * (0.2 * max(m, n) ** 0.5 if scale == "match_rms_adamw" else max(1, m / n) ** 0.5)
    kept = param * _k(param, 1 - lr * weight_decay) if weight_decay else param
    return kept - _k(param, rate) * x, buf


def _soap(
    total, param, grad, m, v, left, right, lr=3e-3, beta1=0.95, beta2=0.95, eps=1e-8,
    weight_decay=0.01, step=1,
):  # fmt: skip
    def turned(a, left, right):
        return _product(total, _product(total, left, a.T), right)

    m = _weighted(m, grad, beta1)
    v = parts._squared(v, turned(grad, left.T, right.T), beta2)
    u = turned(turned(m, left.T, right.T) / (np.sqrt(v) + _k(v, eps)), left, right)
    moved = param - _k(m, lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)) * u
    return moved - _k(m, lr * weight_decay) * moved if weight_decay else moved, m, v


def _product(total, a, b):
    """A Bᵀ."""
    return total(np.ascontiguousarray(a[:, None, :] * b[None, :, :]))


def _weighted(old, new, beta):
    return _k(old, beta) * old + _k(old, 1 - beta) * new


# --- adagrad, rmsprop, lion ---------------------------------------------------------------------


def _adagrad(couple, step_of, square):
    def adagrad(param, grad, accum, lr=0.01, lr_decay=0.0, eps=1e-10, weight_decay=0.0, step=1):
        g = couple(grad, param, weight_decay)
        new = square(accum, g)
        rate = _k(g, lr / (1 + (step - 1) * lr_decay))
        return param - step_of(rate, g, np.sqrt(new) + _k(g, eps)), new

    return adagrad


def _rmsprop(blend, squares, step_of):
    def rmsprop(
        param, grad, accum, mean=None, buf=None, lr=0.01, rho=0.99, eps=1e-8, momentum=0.0,
        weight_decay=0.0,
    ):  # fmt: skip
        g = _coupled(grad, param, weight_decay)
        new = squares(accum, g, rho)
        centre = None if mean is None else blend(mean, g, rho)
        inside = new if centre is None else new - centre * centre
        below = np.sqrt(inside) + _k(g, eps)
        if buf is None:
            return param - step_of(_k(g, lr), g, below), new, centre, None
        moved = _k(g, momentum) * buf + g / below
        return param - _k(g, lr) * moved, new, centre, moved

    return rmsprop


def _first(rate, g, below):
    return rate * g / below


def _last(rate, g, below):
    return rate * (g / below)


def _lion(mix, shrink):
    def lion(param, grad, m, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0.0):
        sign = np.sign(mix(m, grad, beta1))
        kept = shrink(param, lr * weight_decay) if weight_decay else param
        return kept - _k(param, lr) * sign, mix(m, grad, beta2)

    return lion


def _fused_square(accum, g):
    return parts._fused(g, g, accum)


globals().update(
    kernels(
        {
            "sgd": _SGD,
            "narrow_step": {
                "usual": _narrow_step(lambda u, comp: u + comp, _rounded),
                "backwards": _narrow_step(lambda u, comp: comp - -u, _rounded),
            },
            "momentum": {name: _without_step(sgd) for name, sgd in _SGD.items()},
            "adam": _ADAM,
            "adagrad": {
                "torch": _adagrad(_coupled, _first, lambda a, g: a + g * g),
                "textbook": _adagrad(_coupled, _last, lambda a, g: a + np.square(g)),
                "fused": _adagrad(_coupled_fused, _last, _fused_square),
            },
            "rmsprop": {
                "torch": _rmsprop(parts._moved, parts._scaled, _first),
                "textbook": _rmsprop(parts._weighted, parts._squared, _last),
                "fused": _rmsprop(parts._moved_fused, parts._scaled_fused, _last),
            },
            "lion": {
                "torch": _lion(parts._weighted, lambda param, d: param * _k(param, 1 - d)),
                "moved": _lion(parts._moved, lambda param, d: param * _k(param, 1 - d)),
                "fused": _lion(parts._weighted_fused, lambda param, d: param * _k(param, 1 - d)),
            },
        }
    )
    | with_totals({"lamb": _lamb, "adafactor": _adafactor, "muon": _muon, "soap": _soap}, TOTALS)
)  # fmt: skip
