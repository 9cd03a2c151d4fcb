"""Formulas to read in every context."""

from typing import Any

from refkernels.contexts import Gradient


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.pivot(x))
    return e / xp.sum(e)


def softmax_backward(xp: Any, dy: Any, x: Any) -> Any:
    y = xp.store(softmax(xp, x))
    return y * (dy - xp.sum(y * dy))


def log_softmax(xp: Any, x: Any) -> Any:
    shifted = x - xp.pivot(x)
    return shifted - xp.log(xp.sum(xp.exp(shifted)))


def rms_norm(xp: Any, x: Any) -> Any:
    return x * xp.rsqrt(xp.mean(xp.square(x)) + xp.number(1e-5))


def layer_norm(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    centred = x - xp.mean(x)
    rstd = xp.store(xp.rsqrt(xp.mean(xp.square(centred)) + xp.number(1e-5)))
    return centred * rstd * weight + bias


def hardswish(xp: Any, x: Any) -> Any:
    return x * xp.clip(x + 3, 0, 6) / 6


def gelu(xp: Any, x: Any) -> Any:
    return x * xp.erfc(-x / xp.sqrt(xp.number(2))) / 2


def attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    scores = xp.store(xp.matmul(q, xp.transpose(k, (1, 0))) / xp.sqrt(xp.number(q.shape[-1])))
    return xp.matmul(xp.store(softmax(xp, scores)), v)


def scalars(xp: Any, x: Any) -> Any:
    """Params that no format holds, combined among themselves and with arrays."""
    beta = xp.number(0.9)
    correction = 1 - xp.power(beta, 3)
    return x * xp.number(0.1) / correction + (1 - beta) * xp.maximum(x, xp.number(0.3)) / 7


def powers(xp: Any, x: Any) -> Any:
    return xp.power(x, 5) - xp.power(x, 3) * xp.number(0.7) + xp.power(2 + xp.square(x), -3)


def cross_entropy(xp: Any, x: Any, target: Any) -> Any:
    """`target` marks each row's class, as truth values."""
    return -xp.sum(xp.where(target, log_softmax(xp, x), xp.number(0)))


def adamw(xp: Any, param: Any, grad: Any, mean: Any, square: Any, step: int = 3) -> Any:
    lr, decay, eps = (xp.number(value) for value in (1e-3, 0.01, 1e-8))
    beta1, beta2 = xp.number(0.9), xp.number(0.999)
    mean = beta1 * mean + (1 - beta1) * grad
    square = beta2 * square + (1 - beta2) * xp.square(grad)
    root = xp.sqrt(square / (1 - xp.power(beta2, step)))
    moved = lr * (mean / (1 - xp.power(beta1, step))) / (root + eps)
    return param - lr * decay * param - moved, mean, square


def pulled(formula: Any) -> Any:
    """The cotangents of a formula's inputs, from its tape."""

    def backward(xp: Any, dy: Any, *inputs: Any) -> Any:
        tape = Gradient(xp)
        leaves = [tape.leaf(x) for x in inputs]
        return tape.pull(formula(tape, *leaves), dy, leaves)

    return backward
