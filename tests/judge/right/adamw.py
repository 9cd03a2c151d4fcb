"""Right AdamW steps: the frameworks' orders of operations, fused steps, wider formats."""

import math

import numpy as np


def _stepped(given, blend, squares, update, decay):
    param, grad, m, v, vmax, lr, beta1, beta2, eps, weight_decay, step = given.values()
    new_m, new_v = blend(m, grad, beta1), squares(v, grad, beta2)
    largest = None if vmax is None else np.maximum(vmax, new_v)
    c1, root = 1 - beta1**step, math.sqrt(1 - beta2**step)
    used = new_v if largest is None else largest
    moved = decay(param, update(new_m, used, lr, c1, root, eps), lr * weight_decay)
    return moved, new_m, new_v, largest


def _kind(array, number):
    return array.dtype.type(number)


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


def _in(dtype, given):
    wide = {n: a.astype(dtype) if isinstance(a, np.ndarray) else a for n, a in given.items()}
    answers = _stepped(wide, _weighted, _squared, _torch, _shrunk)
    return tuple(None if a is None else a.astype(given["param"].dtype) for a in answers)


def torch_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _moved, _scaled, _torch, _shrunk)


def paddle_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _weighted, _squared, _paddle, _shrunk)


def textbook_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _weighted, _squared, _textbook, _apart)


def divided_last_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _moved, _scaled, _divided_last, _shrunk)


def weighted_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _weighted, _scaled, _torch, _shrunk)


def moved_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _moved, _squares_moved, _torch, _shrunk)


def decay_apart_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _weighted, _squared, _torch, _apart)


def paddle_moved_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _moved, _squared, _paddle, _apart)


def fused_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _weighted_fused, _scaled_fused, _torch, _shrunk)


def fused_moved_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _moved_fused, _scaled_fused, _divided_last, _shrunk)


def textbook_moved_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _stepped(locals(), _moved, _squares_moved, _textbook, _shrunk)


def float64_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _in(np.float64, locals())


def float32_inside_adamw(
    param, grad, m, v, vmax=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01,
    step=1,
):  # fmt: skip
    return _in(np.float32, locals())
