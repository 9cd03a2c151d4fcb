"""Faults of a user's formulas: another function or variable, a softmax that does not rescale."""

import numpy as np
import pytest

import refkernels

RNG = np.random.default_rng(3)
ROOT = np.float32(np.sqrt(2 / np.pi))


def drawn(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def gelu_tanh(x):
    return np.float32(0.5) * x * (1 + np.tanh(ROOT * (x + np.float32(0.044715) * x**3)))


def centred(x):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt(np.square(d).mean(-1, keepdims=True) + np.float32(1e-5))


def norm_and_gelu(xp, x):
    d = x - xp.mean(x)
    h = d / xp.sqrt(xp.mean(d * d) + xp.number(1e-5))
    return h * (1 + xp.erf(h / xp.sqrt(xp.number(2)))) / 2


def gated(xp, x, y):
    return x / (1 + xp.exp(-x)) * y


def residual_norm(xp, x, y):
    h = x + y
    return h / xp.sqrt(xp.mean(h * h) + xp.number(1e-6))


def pooled(xp, x):
    return xp.mean(x) * 3


def shifted(xp, x, y):
    return xp.exp(x) * y + x


def summed(xp, x, y):
    return (xp.exp(x) + y) * x


def softmax(xp, x):
    e = xp.exp(x - xp.max(x))
    return e / xp.sum(e)


def _norm_of_x(x, y):
    return (x + y) / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(1e-6))


def _forgetful(x):
    """Blocks of 8, whose exponents are not rescaled when the maximum grows."""
    blocks = x.reshape(len(x), -1, 8)
    so_far = np.maximum.accumulate(blocks.max(-1, keepdims=True), axis=1)
    unscaled = np.exp(blocks - so_far).reshape(x.shape)
    return unscaled / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)


def _apart(x):
    """Blocks of 8, each relative to its own maximum."""
    blocks = x.reshape(len(x), -1, 8)
    e = np.exp(blocks - blocks.max(-1, keepdims=True)).reshape(x.shape)
    return e / e.sum(-1, keepdims=True)


ROWS = "x[... n] -> y[... n]", ((12, 32),)
PAIR = "x[...], y[...] -> z[...]", ((400,), (400,))
TWO = "x[... n], y[... n] -> z[... n]", ((12, 32), (12, 32))
ANOTHER = "function_for_another"
CASES = {
    "gelu by tanh": (
        *(norm_and_gelu, *ROWS, lambda x: gelu_tanh(centred(x))),
        *("tanh_gelu", {"other": "gelu_tanh"}),
    ),
    "no activation": (norm_and_gelu, *ROWS, centred, ANOTHER, {"other": "x"}),
    "gelu for silu": (gated, *PAIR, lambda x, y: gelu_tanh(x) * y, ANOTHER, {"other": "gelu_tanh"}),
    "norm of x alone": (residual_norm, *TWO, _norm_of_x, "term_missing", {"part": "y"}),
    "max for mean": (
        *(pooled, "x[... n] -> y[...]", ((40, 16),), lambda x: 3 * x.max(-1)),
        *("max_for_mean", {"taken": "max"}),
    ),
    "not rescaled": (softmax, *ROWS, _forgetful, "shift_by_blocks", {"block": 8}),
    "blocks apart": (softmax, *ROWS, _apart, "shift_of_each_block", {"block": 8}),
    "one minus y": (
        *(gated, *PAIR, lambda x, y: x / (1 + np.exp(-x)) * (1 - y)),
        *("complement_taken", {"part": "y"}),
    ),
    "times the sum": (shifted, *PAIR, lambda x, y: np.exp(x) * (y + x), "parentheses_moved", {}),
    "plus the product": (summed, *PAIR, lambda x, y: np.exp(x) + y * x, "parentheses_moved", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_fault_is_named(case) -> None:
    formula, signature, shapes, kernel, cause, details = CASES[case]
    oracle = refkernels.oracle(formula, signature, "n" if " n]" in signature else "")
    arrays = dict(zip("xy", (drawn(*shape) for shape in shapes), strict=False))
    answer = kernel(*arrays.values()).astype(np.float32)
    (output,) = oracle.op.outputs
    explanation = refkernels.explain(oracle.op, arrays, {"kernel": {output: answer}})
    assert (explanation.cause, explanation.confidence) == (cause, "proven")
    told = explanation.kernels["kernel"].candidates[0].details
    assert {name: told[name] for name in details} == details
