"""Faults that any op may have: parts of reductions left out, quantised weights, intermediates that
overflow, another norm, a negative variance, 16-bit arithmetic, one narrow result; and clipping by
groups."""

from typing import Any

import numpy as np
from planted import Array, Arrays, Kernel, Planted, working
from questions import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    Builder,
    linear_inputs,
    norm_inputs,
    normal,
)


def _rms(kernel: Kernel, x: Array, squares: Array, n: int) -> Array:
    kind = squares.dtype.type
    return x.astype(kind) / np.sqrt(kernel.sum(squares) / kind(n) + kind(1e-5))


def _squares(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    """RMSNorm's squares in float16, some of which overflow."""
    x, kernel = normal(rng, *shape, dtype=dtype), Kernel(rng)
    x[::3] *= x.dtype.type(200)
    with np.errstate(over="ignore"):
        squares = np.square(x.astype(np.float16)).astype(np.float32)
    y = _rms(kernel, x, squares, shape[1]).astype(dtype)
    params = {"eps": 1e-5}
    return Planted("early_overflow", "rms_norm", {"x": x}, {"y": y}, params, dtype=str(dtype))


def _quantised(bits: int, rows: bool) -> Builder:
    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        inputs = linear_inputs(rng, shape, dtype)
        weight = inputs["weight"].astype(np.float32)
        largest = np.float32(2 ** (bits - 1) - 1)
        scale = np.max(np.abs(weight), axis=1 if rows else None, keepdims=True) / largest
        used = {**inputs, "weight": (np.rint(weight / scale) * scale).astype(dtype)}
        y = Kernel(rng).linear(used)
        return Planted("quantised_weights", "linear", inputs, {"y": y}, dtype=str(dtype))

    return build


def _activations(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    """int8 activations with a scale for each row, or for all; the weights may be int8 too."""
    inputs = linear_inputs(rng, shape, dtype)
    rows, both = bool(rng.integers(2)), bool(rng.integers(2))

    def restored(name: str, axis: int | None) -> Array:
        array = inputs[name].astype(np.float32)
        scale = np.max(np.abs(array), axis=axis, keepdims=True) / np.float32(127)
        return (np.rint(array / scale) * scale).astype(dtype)

    used = {**inputs, "x": restored("x", 1 if rows else None)}
    used |= {"weight": restored("weight", 1)} if both else {}
    y = Kernel(rng).linear(used)
    return Planted("quantised_activations", "linear", inputs, {"y": y}, dtype=str(dtype))


def _norm(cause: str, centre: bool, added: float) -> Builder:
    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        inputs, kernel = norm_inputs(rng, shape, dtype, offset=0.5), Kernel(rng)
        wide: Arrays = {name: array.astype(working(dtype)) for name, array in inputs.items()}
        kind = wide["x"].dtype.type
        x = wide["x"] - (kernel.sum(wide["x"]) / kind(shape[1]) if centre else kind(0))
        y = _rms(kernel, x, np.square(x), shape[1]) * (wide["weight"] + kind(added)) + wide["bias"]
        return Planted(cause, "layernorm", inputs, {"y": y.astype(dtype)}, dtype=str(dtype))

    return build


def _groups(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    """Rows are tensors; each of two groups is clipped by its own norm."""
    rows, n = shape
    tensor, kind = np.repeat(np.arange(rows), n), working(dtype)
    grads, group = normal(rng, rows * n, dtype=dtype), rng.permutation(np.arange(rows) % 2 == 0)
    wide, max_norm = grads.astype(kind).reshape(shape), float(rng.uniform(0.1, 5.0))
    clipped = np.empty_like(wide)
    for members in (group, ~group):
        norm = np.sqrt(Kernel(rng).sum(np.square(wide[members].reshape(1, -1))))[0, 0]
        clipped[members] = wide[members] * (kind(max_norm) / (norm + kind(1e-6)))
    inputs, outputs = (
        {"grads": grads, "tensor": tensor},
        {"clipped": clipped.reshape(-1).astype(dtype)},
    )
    params = {"max_norm": max_norm}
    return Planted(
        "clipped_per_group", "clip_by_global_norm", inputs, outputs, params, dtype=str(dtype)
    )


def _narrow(cumulative: bool) -> Builder:
    """Running sums that are stored one by one, or an RMS norm of ops that store their results."""

    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        x = normal(rng, *shape, dtype=dtype)
        if cumulative:
            y = np.add.accumulate(x, axis=-1, dtype=x.dtype)
            op, params, inputs = "cumsum", {"axis": -1}, {"x": x}
        else:
            inputs = {"x": x, "weight": normal(rng, shape[1], dtype=dtype)}
            squares = np.square(x).astype(working(dtype))
            mean = (Kernel(rng).sum(squares) / squares.dtype.type(shape[1])).astype(dtype)
            root = np.sqrt((mean.astype(working(dtype)) + 1e-5).astype(dtype)).astype(dtype)
            y = (x / root).astype(dtype) * inputs["weight"]
            op, params = "rms_norm", {"eps": 1e-5}
        outputs = {"y": y.astype(dtype)}
        return Planted("narrow_intermediates", op, inputs, outputs, params, dtype=str(dtype))

    return build


def _zero_decay(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    """Lion that adds 0 times the parameter to the gradient; some parameters are infinite."""
    count, kind = shape[0] * shape[1], working(dtype)
    inputs = {name: normal(rng, count, dtype=dtype) for name in ("param", "grad", "m")}
    inputs["param"][rng.permutation(count)[:16]] = np.inf
    param, grad, m = (array.astype(kind) for array in inputs.values())
    with np.errstate(invalid="ignore"):
        grad = grad + kind(0) * param
        new = param - kind(1e-4) * np.sign(kind(0.9) * m + kind(0.1) * grad)
    outputs = {"param": new, "m": kind(0.99) * m + kind(0.01) * grad}
    outputs = {name: array.astype(dtype) for name, array in outputs.items()}
    return Planted("zero_decay", "lion", inputs, outputs, dtype=str(dtype))


BOTH = (FLOAT32, FLOAT16)
NARROW = (FLOAT16, BFLOAT16)
ONE = (FLOAT32,)
FAULTS: dict[str, tuple[tuple[Builder, tuple[Any, ...]], ...]] = {
    "overflow_in_a_formula": ((_squares, BOTH),),
    "quantised_weights": ((_quantised(8, True), ONE), (_quantised(4, False), BOTH)),
    "mean_not_subtracted": ((_norm("mean_not_subtracted", False, 0.0), BOTH),),
    "weight_plus_one": ((_norm("weight_plus_one", True, 1.0), BOTH),),
    "narrow_intermediates": ((_narrow(True), NARROW), (_narrow(False), NARROW)),
    "zero_decay": ((_zero_decay, BOTH),),
    "quantised_activations": ((_activations, ONE),),
    "clipped_per_group": ((_groups, BOTH),),
}
