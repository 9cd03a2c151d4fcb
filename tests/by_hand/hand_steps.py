"""Optimizers' steps, where a parameter's name plays no part, and clipping, by their definitions."""

from typing import Any

import numpy as np
from hand_numbers import Numbers, number, sqrt
from hand_quantization import table_quantize
from mpmath import mp


def sgd(
    param: Any, grad: Any, buf: Any = None, lr: float = 0.01, momentum: float = 0.9,
    weight_decay: float = 0.0, nesterov: bool = False, dampening: float = 0.0, step: int = 1,
    name: str = "weight",
) -> dict[str, Any]:  # fmt: skip
    lr, mu, tau = number(lr), number(momentum), number(dampening)
    g = grad + number(weight_decay) * param
    if buf is None:
        return {"param": param - lr * g, "buf": None}
    new = g if step == 1 else mu * buf + (1 - tau) * g
    return {"param": param - lr * (g + mu * new if nesterov else new), "buf": new}


def momentum(
    param: Any, grad: Any, buf: Any, lr: float = 0.01, momentum: float = 0.9,
    weight_decay: float = 0.0, nesterov: bool = False, name: str = "weight",
) -> dict[str, Any]:  # fmt: skip
    return sgd(param, grad, buf, lr, momentum, weight_decay, nesterov, step=2)


def moments(m: Any, v: Any, g: Any, beta1: float, beta2: float) -> tuple[Any, Any]:
    b1, b2 = number(beta1), number(beta2)
    return m * b1 + g * (1 - b1), v * b2 + g * g * (1 - b2)


def direction(m: Any, v: Any, beta1: float, beta2: float, eps: float, step: int) -> Any:
    c1, c2 = 1 - number(beta1) ** step, 1 - number(beta2) ** step
    return (m / c1) / (sqrt(v / c2) + number(eps))


def adam(
    param: Any, grad: Any, m: Any, v: Any, vmax: Any = None, lr: float = 1e-3, beta1: float = 0.9,
    beta2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0, step: int = 1,
    decoupled: bool = False, name: str = "weight",
) -> dict[str, Any]:  # fmt: skip
    lr, wd = number(lr), number(weight_decay)
    new_m, new_v = moments(m, v, grad if decoupled else grad + wd * param, beta1, beta2)
    largest = None if vmax is None else np.maximum(vmax, new_v)
    taken = direction(new_m, new_v if vmax is None else largest, beta1, beta2, eps, step)
    kept = param * (1 - lr * wd) if decoupled else param
    return {"param": kept - lr * taken, "m": new_m, "v": new_v, "vmax": largest}


def adamw(param: Any, grad: Any, m: Any, v: Any, weight_decay: float = 0.01, **rest: Any) -> Any:
    return adam(param, grad, m, v, weight_decay=weight_decay, decoupled=True, **rest)


def adamw_8bit(
    param: Numbers, grad: Numbers, m: Any, v: Any, m_scale: Any, v_scale: Any, m_table: Any,
    v_table: Any, **rest: Any,
) -> Any:  # fmt: skip
    states = (m_table[m] * m_scale[..., None], v_table[v] * v_scale[..., None])
    new = adamw(param, grad, *states, **rest)
    for name, table in (("m", m_table), ("v", v_table)):
        coded = table_quantize(new[name], table)
        new |= {name: coded["y"], f"{name}_scale": coded["scale"]}
    return new


def lamb(
    param: Numbers, grad: Numbers, m: Numbers, v: Numbers, lr: float = 1e-3, beta1: float = 0.9,
    beta2: float = 0.999, eps: float = 1e-6, weight_decay: float = 0.01, step: int = 1,
) -> dict[str, Any]:  # fmt: skip
    new_m, new_v = moments(m, v, grad, beta1, beta2)
    u = direction(new_m, new_v, beta1, beta2, eps, step) + number(weight_decay) * param
    norm, own = mp.sqrt((param * param).sum()), mp.sqrt((u * u).sum())
    ratio = norm / own if norm and own else 1
    return {"param": param - u * (number(lr) * ratio), "m": new_m, "v": new_v}


def adafactor(
    param: Numbers, grad: Numbers, row: Numbers, col: Numbers, lr: float = 0.01,
    beta2_decay: float = -0.8, eps1: float = 1e-7, eps2: float = 1e-3, d: float = 1.0,
    weight_decay: float = 0.0, step: int = 1,
) -> dict[str, Any]:  # fmt: skip
    b, lr = mp.power(step, number(beta2_decay)), number(lr)
    (m, n), squares = param.shape, grad * grad
    row, col = row * (1 - b) + squares.sum(1) / n * b, col * (1 - b) + squares.sum(0) / m * b
    v = row[:, None] * col / max(row.sum() / m, number(eps1))
    u = grad / sqrt(np.maximum(v, number(eps1) ** 2))
    sizes = [mp.sqrt((a * a).sum() / (m * n)) for a in (param, u)]
    rate = max(number(eps2), sizes[0]) * min(lr, 1 / mp.sqrt(step))
    kept = param * (1 - lr * number(weight_decay))
    return {"param": kept - u * (rate / max(1, sizes[1] / number(d))), "row": row, "col": col}


def muon(
    param: Numbers, grad: Numbers, buf: Numbers, lr: float = 1e-3, momentum: float = 0.95,
    weight_decay: float = 0.1, nesterov: bool = True, ns_a: float = 3.4445, ns_b: float = -4.775,
    ns_c: float = 2.0315, eps: float = 1e-7, ns_steps: int = 5, scale: str = "original",
) -> dict[str, Any]:  # fmt: skip
    mu, lr, (m, n) = number(momentum), number(lr), param.shape
    a, b, c = (number(k) for k in (ns_a, ns_b, ns_c))
    buf = mu * buf + (1 - mu) * grad
    x = mu * buf + (1 - mu) * grad if nesterov else buf
    x = x / max(mp.sqrt((x * x).sum()), number(eps))
    for _ in range(ns_steps):  # on the other side: (X Xᵀ) X = X (Xᵀ X)
        gram = x.T @ x
        x = a * x + x @ (b * gram + c * (gram @ gram))
    rate = lr * (mp.sqrt(max(m, n)) / 5 if scale != "original" else mp.sqrt(max(1, mp.mpf(m) / n)))
    return {"param": param * (1 - lr * number(weight_decay)) - rate * x, "buf": buf}


def soap(
    param: Numbers, grad: Numbers, m: Numbers, v: Numbers, left: Numbers, right: Numbers,
    lr: float = 3e-3, beta1: float = 0.95, beta2: float = 0.95, eps: float = 1e-8,
    weight_decay: float = 0.01, step: int = 1,
) -> dict[str, Any]:  # fmt: skip
    b1, b2, lr = number(beta1), number(beta2), number(lr)
    m, turned = b1 * m + (1 - b1) * grad, left.T @ grad @ right
    v = b2 * v + (1 - b2) * turned * turned
    u = left @ (left.T @ m @ right / (sqrt(v) + number(eps))) @ right.T
    moved = param - u * (lr * mp.sqrt(1 - b2**step) / (1 - b1**step))
    return {"param": moved * (1 - lr * number(weight_decay)), "m": m, "v": v}


def adagrad(
    param: Any, grad: Any, accum: Any, lr: float = 0.01, lr_decay: float = 0.0, eps: float = 1e-10,
    weight_decay: float = 0.0, step: int = 1,
) -> dict[str, Any]:  # fmt: skip
    g = grad + number(weight_decay) * param
    new = accum + g * g
    rate = number(lr) / (1 + (step - 1) * number(lr_decay))
    return {"param": param - rate * g / (sqrt(new) + number(eps)), "accum": new}


def rmsprop(
    param: Any, grad: Any, accum: Any, mean: Any = None, buf: Any = None, lr: float = 0.01,
    rho: float = 0.99, eps: float = 1e-8, momentum: float = 0.9, weight_decay: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    rho, g = number(rho), grad + number(weight_decay) * param
    new = rho * accum + (1 - rho) * g * g
    centre = None if mean is None else rho * mean + (1 - rho) * g
    taken = g / (sqrt(new if mean is None else new - centre * centre) + number(eps))
    moved = None if buf is None else number(momentum) * buf + taken
    param = param - number(lr) * (taken if buf is None else moved)
    return {"param": param, "accum": new, "mean": centre, "buf": moved}


def lion(
    param: Any, grad: Any, m: Any, lr: float = 1e-4, beta1: float = 0.9, beta2: float = 0.99,
    weight_decay: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    b1, b2, lr = number(beta1), number(beta2), number(lr)
    taken = np.sign(b1 * m + (1 - b1) * grad)
    param = param * (1 - lr * number(weight_decay)) - lr * taken
    return {"param": param, "m": b2 * m + (1 - b2) * grad}


def factor(n: Any, max_norm: float, eps: float, way: str) -> Any:
    limit = number(max_norm)
    return min(1, limit / (n + number(eps))) if way == "eps" else limit / max(n, limit)


def norm_of(grads: Numbers, norm_type: float) -> Any:
    return mp.sqrt((grads * grads).sum()) if norm_type == 2 else abs(grads).max()


def clip_by_global_norm(
    grads: Numbers, tensor: Any, max_norm: float = 1.0, eps: float = 1e-6, way: str = "eps",
    norm_type: float = 2.0,
) -> dict[str, Any]:  # fmt: skip
    n = norm_of(grads, norm_type)
    return {"clipped": grads * factor(n, max_norm, eps, way), "norm": np.array(n, object)}


def clip_by_norm(
    grads: Numbers, tensor: Any, max_norm: float = 1.0, eps: float = 1e-6, way: str = "max",
    norm_type: float = 2.0,
) -> Any:  # fmt: skip
    clipped = grads.copy()
    for k in np.unique(tensor):
        own = grads[tensor == k]
        clipped[tensor == k] = own * factor(norm_of(own, norm_type), max_norm, eps, way)
    return clipped


def clip_by_value(grads: Any, max_value: float = 1.0) -> Any:
    return np.minimum(np.maximum(grads, -number(max_value)), number(max_value))


STEPS = {
    "sgd": sgd,
    "momentum": momentum,
    "adam": adam,
    "adamw": adamw,
    "adamw_8bit": adamw_8bit,
    "lamb": lamb,
    "adafactor": adafactor,
    "muon": muon,
    "soap": soap,
    "adagrad": adagrad,
    "rmsprop": rmsprop,
    "lion": lion,
    "clip_by_global_norm": clip_by_global_norm,
    "clip_by_norm": clip_by_norm,
    "clip_by_value": clip_by_value,
}
