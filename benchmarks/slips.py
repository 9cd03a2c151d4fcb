"""Faults of conversions and of blocks: truncated bits, miscounted lanes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from planted import BFLOAT16, FUNCTIONS, Array, Arrays, Kernel, Planted, exact, working
from questions import FLOAT16, FLOAT32, FLOAT64, Builder, linear_inputs, norm_inputs, normal

OPS = ("linear", "linear backward", "layernorm", "layernorm backward", "function")


def cut(values: Array, dtype: Any) -> Array:
    """The values truncated: rounded to nearest, and moved one step back where that is larger."""
    if dtype == "tf32":
        return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    near = values.astype(dtype)
    larger = np.abs(near.astype(np.float64)) > np.abs(values.astype(np.float64))
    unsigned = np.dtype(f"u{near.dtype.itemsize}")
    return (near.view(unsigned) - larger.astype(unsigned)).view(near.dtype)


def _right(kernel: Kernel, op: str, inputs: Arrays) -> Arrays:
    if op == "linear":
        return {"y": kernel.linear(inputs)}
    if op == "linear backward":
        return kernel.linear_backward(inputs)
    return kernel.layernorm(inputs)


def _asked(rng: np.random.Generator, op: str, shape: tuple[int, int], dtype: Any) -> Arrays:
    if op.startswith("layernorm"):
        return norm_inputs(rng, shape, dtype, dy="backward" in op)
    inputs = linear_inputs(rng, shape, dtype)
    if "backward" in op:
        inputs["dy"] = normal(rng, shape[0], 24, dtype=dtype)
    return inputs


def _planted(cause: str, op: str, inputs: Arrays, outputs: Arrays, dtype: Any) -> Planted:
    name, _, direction = op.partition(" ")
    return Planted(cause, name, inputs, outputs, {}, direction or "forward", str(dtype))


def _function(
    rng: np.random.Generator, shape: tuple[int, int], dtype: Any
) -> tuple[str, Array, Array]:
    """An op, its argument in the format, and its value in float64."""
    op = str(rng.choice(list(FUNCTIONS)))
    x = rng.uniform(0.1 if op == "log1p" else -3.0, 3.0, shape).astype(dtype)
    return op, x, exact(op, x.astype(np.float64))


def _cut_output(op: str, to: Any = None) -> Builder:
    """A right answer in a wider format, truncated at the end to the dtype, or to `to`, which is
    narrower."""

    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        if op == "function":
            name, x, y = _function(rng, shape, dtype)
            outputs = {"y": cut(y, to or dtype).astype(dtype)}
            return _planted("truncated_output", name, {"x": x}, outputs, dtype)
        inputs = _asked(rng, op, shape, dtype)
        kind = FLOAT64 if dtype == FLOAT32 and to is None else FLOAT32
        wide = {name: array.astype(kind) for name, array in inputs.items()}
        answers = _right(Kernel(rng), op, wide)
        outputs = {name: cut(array, to or dtype).astype(dtype) for name, array in answers.items()}
        return _planted("truncated_output", op, inputs, outputs, dtype)

    return build


def _cut_inputs(op: str, to: Any) -> Builder:
    """Inputs (LayerNorm's x, a product's factors) truncated first."""

    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        cause = "truncated_inputs"
        if op == "function":
            name, x, _ = _function(rng, shape, dtype)
            y = exact(name, cut(x, to).astype(np.float64)).astype(dtype)
            return _planted(cause, name, {"x": x}, {"y": y}, dtype)
        inputs = _asked(rng, op, shape, dtype)
        left_wide = ("bias",) if op.startswith("linear") else ("weight", "bias", "dy")
        narrow = {
            name: array if name in left_wide else cut(array, to).astype(dtype)
            for name, array in inputs.items()
        }
        return _planted(cause, op, inputs, _right(Kernel(rng), op, narrow), dtype)

    return build


def _statistics(cause: str, store: Callable[[Array], Array], dy: bool = False) -> Builder:
    """Mean and rstd stored in another format before they are used."""

    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        op = "layernorm backward" if dy else "layernorm"
        inputs = norm_inputs(rng, shape, dtype, 10.0, dy)
        kernel = Kernel(rng)
        kind = working(dtype)
        mean, rstd = kernel.statistics(inputs["x"].astype(kind), "two_pass", 1e-5)
        used = [store(values).astype(kind) for values in (mean, rstd)]
        return _planted(cause, op, inputs, _normalised(kernel, inputs, *used), dtype)

    return build


def _normalised(
    kernel: Kernel,
    inputs: Arrays,
    mean: Array,
    rstd: Array,
    sums: Callable[[Array], Array] | None = None,
) -> Arrays:
    """LayerNorm with these statistics; sums: backward's means over a row."""
    dtype, kind = inputs["x"].dtype, mean.dtype.type
    wide = {name: array.astype(kind) for name, array in inputs.items()}
    xhat = (wide["x"] - mean) * rstd
    if "dy" not in inputs:
        return {"y": (xhat * wide["weight"] + wide["bias"]).astype(dtype)}
    t = wide["dy"] * wide["weight"]
    mean_of = sums or (lambda values: kernel.sum(values) / kind(values.shape[1]))
    gradients = {
        "dx": rstd * (t - mean_of(t) - xhat * mean_of(t * xhat)),
        "dweight": kernel.sum(wide["dy"] * xhat, 0)[0],
        "dbias": kernel.sum(wide["dy"], 0)[0],
    }
    return {name: array.astype(dtype) for name, array in gradients.items()}


def _blocks(cause: str, slip: str, dy: bool = False) -> Builder:
    """Statistics of a row that its blocks do not fill, in blocks of 48 or padded to 256."""

    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        op = "layernorm backward" if dy else "layernorm"
        rows, n = shape[0], 48 + 16 * int(rng.integers(1, 3)) + int(rng.integers(1, 15))
        inputs = norm_inputs(rng, (rows, n), dtype, 1.0, dy)
        kernel, kind = Kernel(rng), working(dtype)
        x, length, kept = inputs["x"].astype(kind), 128, n - n % 16
        sums: Callable[[Array], Array] | None = None
        if slip == "backward":
            mean, rstd = kernel.statistics(x, "two_pass", 1e-5)
            if cause == "dropped_tail":
                sums = lambda values: kernel.sum(values[:, :kept]) / kind(n)  # noqa: E731
            else:
                sums = lambda values: kernel.sum(values) / kind(length)  # noqa: E731
        else:
            mean, rstd = _miscounted(kernel, x, slip, length, kept)
        outputs = _normalised(kernel, inputs, mean, rstd, sums)
        return _planted(cause, op, inputs, outputs, dtype)

    return build


def _miscounted(
    kernel: Kernel, x: Array, slip: str, length: int, full_blocks: int
) -> tuple[Array, Array]:
    kind, n = x.dtype.type, x.shape[1]
    divisor = length if slip in ("mean", "both", "row") else n
    counted = x[:, :full_blocks] if slip.startswith("tail") else x
    if slip == "tail, counted":
        divisor = full_blocks
    mean = kernel.sum(counted) / kind(divisor)
    if slip in ("variance", "row"):
        counted = np.pad(x, ((0, 0), (0, length - n)))
    squares = kernel.sum(np.square(counted - mean))
    var = squares / kind({"both": length, "row": length, "tail, counted": full_blocks}.get(slip, n))
    if slip == "divided":
        var = squares / kind(length)
    return mean, kind(1) / np.sqrt(var + kind(1e-5))


NARROW = (FLOAT16, BFLOAT16)
CUT = (FLOAT32, *NARROW)
FAULTS: dict[str, tuple[tuple[Builder, tuple[Any, ...]], ...]] = {
    "truncated_output": (
        *((_cut_output(op), CUT) for op in OPS),
        *((_cut_output(op, to), (FLOAT32,)) for op in ("linear", "function") for to in ("tf32",)),
        (_cut_output("layernorm", BFLOAT16), (FLOAT32,)),
    ),
    "truncated_inputs": (
        *((_cut_inputs("linear", to), (FLOAT32,)) for to in ("tf32", BFLOAT16)),
        (_cut_inputs("linear backward", "tf32"), (FLOAT32,)),
        (_cut_inputs("layernorm", BFLOAT16), (FLOAT32,)),
        (_cut_inputs("layernorm backward", FLOAT16), (FLOAT32,)),
        *((_cut_inputs("function", to), (FLOAT32,)) for to in (BFLOAT16, FLOAT16)),
        (_cut_inputs("function", FLOAT32), (FLOAT64,)),
    ),
    "truncated_statistics": (
        (_statistics("truncated_statistics", lambda v: cut(v, FLOAT16)), (FLOAT32, FLOAT16)),
        (_statistics("truncated_statistics", lambda v: cut(v, BFLOAT16)), (FLOAT32, BFLOAT16)),
        (_statistics("truncated_statistics", lambda v: cut(v, BFLOAT16), dy=True), (FLOAT32,)),
    ),
    "padded_variance": (
        (_blocks("padded_variance", "variance"), CUT),
        (_blocks("padded_variance", "variance", dy=True), (FLOAT32,)),
    ),
    "padded_divisor": (
        *((_blocks("padded_divisor", slip), CUT) for slip in ("mean", "both", "divided")),
        (_blocks("padded_divisor", "backward", dy=True), (FLOAT32, FLOAT16)),
    ),
    "padded_row": ((_blocks("padded_row", "row"), CUT),),
    "dropped_tail": (
        *((_blocks("dropped_tail", slip), CUT) for slip in ("tail", "tail, counted")),
        (_blocks("dropped_tail", "backward", dy=True), (FLOAT32, FLOAT16)),
    ),
}
