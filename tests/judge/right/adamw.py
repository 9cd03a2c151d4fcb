"""Right AdamW steps: the frameworks' orders of operations, fused steps, wider formats."""

import math

import numpy as np
from _ways import in_kind as _kind


def _stepped(given, blend, squares, update, decay):
    param, grad, m, v, vmax, lr, beta1, beta2, eps, weight_decay, step = given.values()
    new_m, new_v = blend(m, grad, beta1), squares(v, grad, beta2)
    largest = None if vmax is None else np.maximum(vmax, new_v)
    c1, root = 1 - beta1**step, math.sqrt(1 - beta2**step)
    used = new_v if largest is None else largest
    moved = decay(param, update(new_m, used, lr, c1, root, eps), lr * weight_decay)
    return moved, new_m, new_v, largest


def _fused(a, b, c):
    """a b + c, rounded once: the product of two float32 is exact in float64."""
    return (np.asarray(a, np.float64) * b + c).astype(c.dtype)


def _weighted(m, g, beta):
    return _kind(m, beta) * m + _kind(m, 1 - beta) * g


def _moved(m, g, beta):
    return m + _kind(m, 1 - beta) * (g - m)


def _weighted_fused(m, g, beta):
    return _fused(_kind(m, 1 - beta), g, _kind(m, beta) * m)


def _moved_fused(m, g, beta):
    return _fused(_kind(m, 1 - beta), g - m, m)


def _scaled(v, g, beta):
    return _kind(v, beta) * v + _kind(v, 1 - beta) * g * g


def _squared(v, g, beta):
    return _kind(v, beta) * v + _kind(v, 1 - beta) * np.square(g)


def _squares_moved(v, g, beta):
    return v + _kind(v, 1 - beta) * (np.square(g) - v)


def _scaled_fused(v, g, beta):
    return _fused(_kind(v, 1 - beta) * g, g, _kind(v, beta) * v)


def _torch(m, v, lr, c1, root, eps):
    return _kind(m, lr / c1) * m / (np.sqrt(v) / _kind(m, root) + _kind(m, eps))


def _divided_last(m, v, lr, c1, root, eps):
    return _kind(m, lr / c1) * (m / (np.sqrt(v) / _kind(m, root) + _kind(m, eps)))


def _paddle(m, v, lr, c1, root, eps):
    return _kind(m, lr / c1 * root) * (m / (np.sqrt(v) + _kind(m, eps * root)))


def _textbook(m, v, lr, c1, root, eps):
    root_v = np.sqrt(v / _kind(v, root * root))
    return _kind(m, lr) * ((m / _kind(m, c1)) / (root_v + _kind(m, eps)))


def _shrunk(param, taken, decay):
    return param * _kind(param, 1 - decay) - taken


def _apart(param, taken, decay):
    return param - _kind(param, decay) * param - taken


def _in(given, dtype):
    wide = {n: a.astype(dtype) if isinstance(a, np.ndarray) else a for n, a in given.items()}
    answers = _stepped(wide, _weighted, _squared, _torch, _shrunk)
    return tuple(None if a is None else a.astype(given["param"].dtype) for a in answers)


def _kernel(compute, *how):
    def kernel(
        param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
        step=1,
    ):  # fmt: skip
        given = {name: a for name, a in locals().items() if name not in ("compute", "how")}
        return compute(given, *how)

    return kernel


torch_adamw = _kernel(_stepped, _moved, _scaled, _torch, _shrunk)
paddle_adamw = _kernel(_stepped, _weighted, _squared, _paddle, _shrunk)
textbook_adamw = _kernel(_stepped, _weighted, _squared, _textbook, _apart)
divided_last_adamw = _kernel(_stepped, _moved, _scaled, _divided_last, _shrunk)
weighted_adamw = _kernel(_stepped, _weighted, _scaled, _torch, _shrunk)
moved_adamw = _kernel(_stepped, _moved, _squares_moved, _torch, _shrunk)
decay_apart_adamw = _kernel(_stepped, _weighted, _squared, _torch, _apart)
paddle_moved_adamw = _kernel(_stepped, _moved, _squared, _paddle, _apart)
fused_adamw = _kernel(_stepped, _weighted_fused, _scaled_fused, _torch, _shrunk)
fused_moved_adamw = _kernel(_stepped, _moved_fused, _scaled_fused, _divided_last, _shrunk)
textbook_moved_adamw = _kernel(_stepped, _moved, _squares_moved, _textbook, _shrunk)
float64_adamw = _kernel(_in, np.float64)
float32_inside_adamw = _kernel(_in, np.float32)
