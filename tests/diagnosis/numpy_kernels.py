"""Kernels in NumPy, independent of the package: right, unless an argument asks for a fault."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

F = np.float32
ERF = np.vectorize(math.erf, otypes=[np.float64])


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(F)


def cast(array: Any, format: Any = F) -> Any:
    """Rounded to the format, and kept in the array's."""
    return array.astype(format).astype(array.dtype)


def cut(values: Any, dtype: Any) -> Any:
    """The values truncated: rounded to nearest, and moved one step back where that is larger."""
    near = values.astype(dtype)
    larger = np.abs(near.astype(np.float64)) > np.abs(values.astype(np.float64))
    unsigned = np.dtype(f"u{near.dtype.itemsize}")
    return (near.view(unsigned) - larger.astype(unsigned)).view(near.dtype)


# --- functions ------------------------------------------------------------------------------------


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def silu(x: Any) -> Any:
    return x * sigmoid(x)


def gelu_tanh(x: Any) -> Any:
    return (
        x
        / 2
        * (1 + np.tanh(x.dtype.type(math.sqrt(2 / math.pi)) * (x + x.dtype.type(0.044715) * x**3)))
    )


def gelu(x: Any) -> Any:
    return (x * (1 + ERF(x / math.sqrt(2))) / 2).astype(x.dtype)


def gelu_in_steps(x: Any) -> Any:
    """As a library computes it in float32: the sum with 1 cancels."""
    kind = x.dtype.type
    return kind(0.5) * x * (kind(1) + ERF(x * kind(math.sqrt(0.5))).astype(x.dtype))


# --- rows -----------------------------------------------------------------------------------------


def linear(x: Any, weight: Any, bias: Any = 0) -> Any:
    return x @ weight.T + bias


def softmax(x: Any, axis: Any = -1, base: float = math.e, kept: slice = slice(None)) -> Any:
    """`kept`: the terms of the sum."""
    e = x.dtype.type(base) ** (x - x[..., kept].max(axis, keepdims=True))
    return e / e[..., kept].sum(axis, keepdims=True)


def log_softmax(x: Any) -> Any:
    d = x - x.max(-1, keepdims=True)
    return d - np.log(np.exp(d).sum(-1, keepdims=True))


def at(rows: Any, target: Any) -> Any:
    """Each row's number at its label."""
    return rows[np.arange(len(rows)), target]


def cross_entropy_dx(dloss: Any, x: Any, target: Any, first: bool = False) -> Any:
    """The gradient of each row's loss; `first`: by the first cotangent."""
    slope = softmax(x) - np.eye(x.shape[1], dtype=x.dtype)[target]
    return slope * (dloss[:1] if first else dloss)[:, None]


def smoothed(x: Any, target: Any, classes: int = 10) -> Any:
    """Labels smoothed by an eighth, over so many classes."""
    y = log_softmax(x)
    return -0.875 * at(y, target) - 0.125 / classes * y.sum(-1)


def attention(
    q: Any, k: Any, v: Any, mask: Any = 0, keep: Any = True, scale: float | None = None,
    cap: float = 0.0, axis: int = -1, fill: float = -np.inf,
) -> Any:  # fmt: skip
    """`cap`: of the scores; `fill`: what stands for those that are not kept."""
    s = q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5 if scale is None else scale)
    s = s.dtype.type(cap) * np.tanh(s / s.dtype.type(cap)) if cap else s
    return softmax(np.where(keep, s + mask, s.dtype.type(fill)), axis) @ v


# --- norms ----------------------------------------------------------------------------------------


def normed(
    x: Any, axes: Any = -1, eps: float = 1e-5, ddof: int = 0, outside: bool = False,
    centred: bool = True,
) -> Any:  # fmt: skip
    """`outside`: eps is added to the root."""
    kind = x.dtype.type
    d = x - x.mean(axes, keepdims=True) if centred else x
    squares = np.square(d).sum(axes, keepdims=True)
    root = np.sqrt(squares / kind(x.size // squares.size - ddof) + kind(0 if outside else eps))
    return d / (root + kind(eps if outside else 0))


def layernorm(x: Any, weight: Any = 1, bias: Any = 0, **how: Any) -> Any:
    return normed(x, **how) * weight + bias


def rms_norm(x: Any, weight: Any = 1, **how: Any) -> Any:
    return normed(x, centred=False, **how) * weight


def group_norm(x: Any, weight: Any = 1, bias: Any = 0, groups: int = 3, **how: Any) -> Any:
    rows = normed(x.reshape(len(x), groups, -1), **how).reshape(x.shape)
    return rows * np.reshape(weight, (-1, 1)) + np.reshape(bias, (-1, 1))


def norm_dx(
    dy: Any, x: Any, weight: Any = 1, centred: bool = True, mean: bool = True,
    variance: bool = True, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """`mean`, `variance`: whether the gradient goes through them."""
    d = x - x.mean(-1, keepdims=True) if centred else x
    r = 1 / np.sqrt(np.square(d).mean(-1, keepdims=True) + x.dtype.type(eps))
    xhat, g = d * r, dy * weight
    inner = g - g.mean(-1, keepdims=True) if mean else g
    return r * (inner - xhat * (g * xhat).mean(-1, keepdims=True) if variance else inner)


def rms_gradients(
    dy: Any, x: Any, weight: Any, weighted: bool = True, variance: bool = True
) -> dict[str, Any]:
    dx = norm_dx(dy, x, weight if weighted else 1, centred=False, mean=False, variance=variance)
    return {"dx": dx, "dweight": (dy * rms_norm(x)).sum(0)}


def next_row_counted(x: Any) -> Any:
    """Groups of three channels, loaded by four and masked at the end of the array."""
    y = np.empty_like(x)
    for own, loaded in ((slice(0, 3), slice(0, 4)), (slice(3, 6), slice(3, 6))):
        mean = x[:, loaded].sum((1, 2), keepdims=True) / 15
        var = np.square(x[:, loaded] - mean).sum((1, 2), keepdims=True) / 15
        y[:, own] = (x[:, own] - mean) / np.sqrt(var + 1e-5)
    return y


def rotary(x: Any, position: Any, as_halves: bool = False) -> Any:
    """Pairs of neighbours; `as_halves`: which are written as halves."""
    angle = position[:, None] / 1e4 ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    parts = pairs.real, pairs.imag
    return np.concatenate(parts, -1) if as_halves else np.stack(parts, -1).reshape(x.shape)


def binary(x: Any, target: Any, pos_weight: Any, swapped: bool = False) -> Any:
    """The loss of logits; `swapped`: the weight multiplies that of the negatives."""
    positive, negative = target * np.logaddexp(0, -x), (1 - target) * np.logaddexp(0, x)
    return positive + pos_weight * negative if swapped else pos_weight * positive + negative


# --- products -------------------------------------------------------------------------------------


def conv1d(x: Any, weight: Any, mode: str | None = None) -> Any:
    """`mode`: of np.pad, by two at both ends."""
    x = np.pad(x, ((0, 0), (0, 0), (2, 2)), mode=mode) if mode else x
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[-1], -1)
    return np.einsum("nctk,ock->not", windows, weight)


def conv2d(x: Any, weight: Any, low: int = 0, stride: int = 1) -> Any:
    """With `low` zeros before x, and as many after it as the windows need."""
    taps = weight.shape[-1]
    padded = np.pad(x, ((0, 0), (0, 0), (low, taps), (low, taps)))
    out = [range(0, n - taps + 1 + 2 * (stride > 1), stride) for n in x.shape[2:]]
    windows = np.array([[padded[:, :, i : i + taps, j : j + taps] for j in out[1]] for i in out[0]])
    return np.einsum("ijbckl,ockl->boij", windows, weight)


def int8(array: Any, axis: int | None = None) -> Any:
    """Rounded to integers, with a scale for all or for each row."""
    scale = np.abs(array).max(axis=axis, keepdims=True).astype(F) / F(127)
    return (np.rint(array.astype(F) / scale) * scale).astype(array.dtype)


# --- updates --------------------------------------------------------------------------------------


def clipped_to(norm: float, grad: Any) -> Any:
    return grad * grad.dtype.type(norm / np.linalg.norm(grad.astype(float)))


def adam(
    param: Any, grad: Any, m: Any, v: Any, step: int = 3, lr: float = 1e-3, eps: float = 1e-8,
    of_m: int | None = None, of_v: int | None = None, of_m_too: bool = False, inside: bool = False,
) -> Any:  # fmt: skip
    """`of_m`, `of_v`: the steps of their corrections, 0 for none; `of_m_too`: the second moment is
    that of the new m; `inside`: eps is added to v, before its correction."""
    m = 0.9 * m + 0.1 * grad
    squared = m if of_m_too else grad
    v = 0.999 * v + 0.001 * squared * squared
    of_m, of_v = (step if given is None else given for given in (of_m, of_v))
    root = math.sqrt(1 - 0.999**of_v) if of_v else 1.0
    below = np.sqrt(v + eps) / root if inside else np.sqrt(v) / root + eps
    return param - lr * m / (1 - 0.9**of_m if of_m else 1.0) / below, m, v


def sgd(param: Any, grad: Any, buf: Any, inside: float = 1.0, lr: float = 0.01) -> Any:
    """`inside`: what multiplies the gradient in the momentum."""
    buf = 0.9 * buf + inside * grad
    return param - lr * buf, buf


def keras(param: Any, grad: Any, accum: Any, rho: float | None = None) -> Any:
    """Decay is subtracted before the step, and eps is inside of the root."""
    new = accum + grad**2 if rho is None else rho * accum + (1 - rho) * grad**2
    return param - 1e-3 * param - 0.01 * grad / np.sqrt(new + 1e-3), new


def lion(
    param: Any, grad: Any, m: Any, beta1: float = 0.9, beta2: float = 0.99, decay: float = 0.0,
    sign: Any = np.sign,
) -> Any:  # fmt: skip
    step = sign(beta1 * m + (1 - beta1) * grad)
    return param * (1 - 1e-4 * decay) - 1e-4 * step, beta2 * m + (1 - beta2) * grad
