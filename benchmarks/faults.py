"""Kernels of `planted.py` with one fault each, and right kernels of every kind."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import slips
from planted import BFLOAT16, FUNCTIONS, Array, Arrays, Kernel, Planted, exact, working
from questions import (
    FLOAT16,
    FLOAT32,
    FLOAT64,
    SHAPES,
    Builder,
    linear_inputs,
    norm_inputs,
    normal,
)


def _layernorm(
    cause: str, offset: float = 0.0, also: tuple[str, ...] = (), dy: bool = False, **how: Any
) -> Builder:
    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        inputs = norm_inputs(rng, shape, dtype, offset, dy)
        outputs = Kernel(rng).layernorm(inputs, **how)
        direction = "backward" if dy else "forward"
        return Planted(cause, "layernorm", inputs, outputs, {}, direction, str(dtype), also)

    return build


def paired(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Rows of pairs c + d, c - d about c = 1024, d of about 16, such that every partial sum is
    exact, and Welford's mean after each element too: the k-th (even) deviation is a multiple of
    2^-6 and of k / 2^13. The formula errs, not the mean."""
    rows, n = shape
    deviations = np.zeros(shape)
    for k in range(2, n, 2):
        step = 2.0**-6 * (k // (k & -k))
        deviations[:, k - 1] = step * np.rint(16.0 * rng.standard_normal(rows) / step)
        deviations[:, k] = -deviations[:, k - 1]
    return (1024.0 + deviations).astype(FLOAT32)


def _folded(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    """Where the mean is exact, folding cancels and (x - mean) rstd does not; elsewhere the rounding
    of the mean costs as much."""
    inputs = {**norm_inputs(rng, shape, dtype), "x": paired(rng, shape).astype(dtype)}
    outputs = Kernel(rng).layernorm(inputs, form="folded")
    return Planted("folded_normalisation", "layernorm", inputs, outputs, dtype=str(dtype))


def _wrong_axes(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    inputs = norm_inputs(rng, shape, dtype)
    x = inputs["x"].astype(working(dtype))
    centred = x - x.mean(0)
    y = centred / np.sqrt(np.square(centred).mean(0) + 1e-5) * inputs["weight"] + inputs["bias"]
    return Planted("wrong_axes", "layernorm", inputs, {"y": y.astype(dtype)}, dtype=str(dtype))


def _swapped(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    inputs = norm_inputs(rng, shape, dtype, dy=True)
    right = Kernel(rng).layernorm(inputs)
    outputs = {"dx": right["dx"], "dweight": right["dbias"], "dbias": right["dweight"]}
    cause = "swapped_weight_bias_grad"
    return Planted(cause, "layernorm", inputs, outputs, {}, "backward", str(dtype))


def _linear(cause: str, answer: Callable[[Kernel, Arrays], Array], square: bool = False) -> Builder:
    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        inputs = linear_inputs(rng, shape, dtype, square)
        y = answer(Kernel(rng), inputs).astype(dtype)
        return Planted(cause, "linear", inputs, {"y": y}, dtype=str(dtype))

    return build


def _after(cause: str, change: Callable[[np.random.Generator, Array], Array]) -> Builder:
    """A right answer of some op, changed."""

    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        kernel = Kernel(rng)
        if rng.integers(2):
            inputs, op = linear_inputs(rng, shape, dtype), "linear"
            y = kernel.linear(inputs)
        else:
            inputs, op = norm_inputs(rng, shape, dtype), "layernorm"
            y = kernel.layernorm(inputs)["y"]
        return Planted(cause, op, inputs, {"y": change(rng, y)}, dtype=str(dtype))

    return build


def _tf32(values: Array) -> Array:
    bits = values.view(np.uint32) + np.uint32(1 << 12)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def _narrow(dtype: Any) -> Callable[[Array], Array]:
    return lambda values: values.astype(dtype).astype(values.dtype)


def _inputs(cause: str, change: Callable[[Array], Array], small: bool = False) -> Builder:
    """Factors rounded first. small: float16 has fewer bits than TF32 below its normal numbers."""

    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        scale = np.float32(2.0**-18 if small else 1.0)
        a, b = normal(rng, *shape) * scale, normal(rng, shape[1], 24)
        c = Kernel(rng).product(change(a), change(b))
        return Planted(cause, "matmul", {"a": a, "b": b}, {"c": c}, dtype=str(dtype))

    return build


def _accumulated(cause: str, storage: Any) -> Builder:
    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        a, b = normal(rng, *shape, dtype=dtype), normal(rng, shape[1], 24, dtype=dtype)
        parts = int(rng.choice([1, 2, 4]))
        narrow = [v.astype(storage).astype(np.float32) for v in (a, b)]
        sums = [np.zeros((shape[0], 24), storage) for _ in range(parts)]
        for k in range(shape[1]):
            product = narrow[0][:, k : k + 1] * narrow[1][k]
            sums[k % parts] = (sums[k % parts].astype(np.float32) + product).astype(storage)
        total = sums[0]
        for part in sums[1:]:
            total = (total.astype(np.float32) + part.astype(np.float32)).astype(storage)
        c = total.astype(dtype)
        return Planted(cause, "matmul", {"a": a, "b": b}, {"c": c}, dtype=str(dtype))

    return build


def _unwritten(rng: np.random.Generator, y: Array) -> Array:
    y = y.copy()
    y[-int(rng.integers(1, 5)) :] = rng.choice([0.0, np.nan])
    return y


def _corrupted(rng: np.random.Generator, y: Array) -> Array:
    y = y.copy()
    y.reshape(-1)[rng.integers(y.size)] = 100.0
    return y


def _any_factor(rng: np.random.Generator, y: Array) -> Array:
    """1.5 % to 66 times the answer, with either sign, except factors near 1."""
    factor = float(np.exp(rng.uniform(0.05, 4.2))) ** float(rng.choice([-1.0, 1.0]))
    kind = working(y.dtype)
    return (y.astype(kind) * kind(factor * float(rng.choice([-1.0, 1.0])))).astype(y.dtype)


def _clipped(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    """Gradients scaled to a norm of 1, all together or each by itself, in the working precision."""
    inputs = linear_inputs(rng, shape, dtype)
    inputs["dy"] = normal(rng, shape[0], 24, dtype=dtype)
    outputs = Kernel(rng).linear_backward(inputs)
    del outputs["dx"]
    norms = {name: np.sqrt(np.sum(np.square(array))) for name, array in outputs.items()}
    if rng.integers(2):
        norms = dict.fromkeys(norms, np.sqrt(sum(norm * norm for norm in norms.values())))
    kind = np.dtype(dtype).type
    outputs = {n: array * (kind(1) / (norms[n] + kind(1e-6))) for n, array in outputs.items()}
    return Planted("scale_factor", "linear", inputs, outputs, {}, "backward", str(dtype))


def _permuted(rng: np.random.Generator, y: Array) -> Array:
    return y[np.roll(np.arange(len(y)), int(rng.integers(1, len(y))))]


def _elementwise(
    cause: str,
    op: str,
    answer: Callable[[np.random.Generator, Array], Array],
    high: float,
    low: float,
) -> Builder:
    def build(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
        name = str(rng.choice(op.split()))
        x = rng.uniform(low, high, shape).astype(dtype)
        if cause == "argument_reduction":
            x[::2] = (x[::2].astype(np.float64) / high).astype(dtype)
        with np.errstate(all="ignore"):
            y = answer(rng, x) if " " not in op else answer(rng, exact(name, x))
        return Planted(cause, name, {"x": x}, {"y": y.astype(dtype)}, dtype=str(dtype))

    return build


def _reduced(rng: np.random.Generator, x: Array) -> Array:
    """sin after one of several reductions in float32."""
    f = np.float32
    x = x.astype(f)
    method = int(rng.integers(3))
    if method == 2:
        return np.sin(np.fmod(x, f(2 * math.pi)))
    k = np.rint(x * f(2 / math.pi))
    if method == 1:
        first = f(math.floor(math.pi / 2 * 2**10) / 2**10)
        r = (x - k * first) - k * f(math.pi / 2 - float(first))
    else:
        r = x - k * f(math.pi / 2)
    q = k.astype(np.int64) % 4
    return np.select([q == 0, q == 1, q == 2], [np.sin(r), np.cos(r), -np.sin(r)], -np.cos(r))


def _erf_form(rng: np.random.Generator, x: Array) -> Array:
    kind = x.dtype.type
    erf = exact("erf", x * kind(math.sqrt(0.5)))
    return kind(0.5) * x * (kind(1) + erf)


def _tanh_form(rng: np.random.Generator, x: Array) -> Array:
    wide = x.astype(np.float32)
    z = np.float32(math.sqrt(2 / math.pi)) * (wide + np.float32(0.044715) * wide**3)
    return np.float32(0.5) * wide * (1 + np.tanh(z))


def _fast(rng: np.random.Generator, y: Array) -> Array:
    error = 2.0**-4 * np.sqrt(float(np.finfo(np.float32).eps) / 2)
    return y.astype(np.float64) * (1 + error * rng.uniform(-1, 1, y.shape))


def _flushed(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    x = (rng.standard_normal(shape) * np.exp2(rng.uniform(-148, 0, shape))).astype(dtype)
    y = exact("sin", x)
    y[np.abs(y) < np.finfo(dtype).tiny] = 0
    return Planted("flush_to_zero", "sin", {"x": x}, {"y": y}, dtype=str(dtype))


NARROW = (FLOAT32, FLOAT16)
WIDE = (FLOAT64,)
ONE = (FLOAT32,)
FAULTS: dict[str, tuple[tuple[Builder, tuple[np.dtype[Any], ...]], ...]] = {
    "bias_first": ((_linear("bias_first", lambda k, i: _blocked_first(i)), ONE),),
    "tf32_inputs": ((_inputs("tf32_inputs", _tf32), ONE),),
    "bf16_inputs": ((_inputs("bf16_inputs", _narrow(BFLOAT16)), ONE),),
    "fp16_inputs": ((_inputs("fp16_inputs", _narrow(FLOAT16), small=True), ONE),),
    "fp16_accumulation": ((_accumulated("fp16_accumulation", FLOAT16), NARROW),),
    "bf16_accumulation": ((_accumulated("bf16_accumulation", BFLOAT16), (BFLOAT16,)),),
    "naive_variance": (
        (_layernorm("naive_variance", 300.0, variance="naive"), ONE),
        (_layernorm("naive_variance", 300.0, variance="naive", dy=True), ONE),
    ),
    "folded_normalisation": (
        (_layernorm("folded_normalisation", 1e3, form="folded"), ONE),
        (_folded, ONE),
    ),
    "low_precision_statistics": (
        (_layernorm("low_precision_statistics", 30.0, stored=FLOAT16), (FLOAT16,)),
    ),
    "float32_statistics": (
        (_layernorm("float32_statistics", 1.0, statistics=np.float32), WIDE),
        (_layernorm("float32_statistics", 1.0, stored=np.float32), WIDE),
    ),
    "float32_cast": ((_layernorm("float32_cast", working=np.float32), WIDE),),
    "eps_rounded": ((_layernorm("eps_rounded", eps=float(np.float32(1e-5))), WIDE),),
    "eps_differs": (
        (_layernorm("eps_differs", eps=1e-3), NARROW),
        (_layernorm("eps_differs", eps=0.0123), (FLOAT32, FLOAT16, FLOAT64)),
    ),
    "eps_outside_sqrt": ((_layernorm("eps_outside_sqrt", outside=True), (FLOAT32, FLOAT64)),),
    "unbiased_variance": (
        (_layernorm("unbiased_variance", ddof=1), (FLOAT32, FLOAT16, FLOAT64)),
        (_layernorm("unbiased_variance", also=("scale_factor",), ddof=1, dy=True), ONE),
    ),
    "constant_statistics": ((_layernorm("constant_statistics", dy=True, constant=True), NARROW),),
    "wrong_axes": ((_wrong_axes, NARROW),),
    "swapped_weight_bias_grad": ((_swapped, NARROW),),
    "missing_bias": ((_linear("missing_bias", lambda k, i: k.linear(i, 0 * i["bias"])), NARROW),),
    "doubled_bias": ((_linear("doubled_bias", lambda k, i: k.linear(i, 2 * i["bias"])), NARROW),),
    "transposed_weight": (
        (
            _linear(
                "transposed_weight",
                lambda k, i: k.linear({**i, "weight": i["weight"].T}),
                square=True,
            ),
            NARROW,
        ),
    ),
    "scale_factor": (
        (_after("scale_factor", lambda r, y: y / y.dtype.type(len(y))), NARROW),
        (_after("scale_factor", _any_factor), (FLOAT32, FLOAT16, FLOAT64)),
        (_clipped, (FLOAT32, FLOAT64)),
    ),
    "sign_error": ((_after("sign_error", lambda r, y: -y), NARROW),),
    "permuted": ((_after("permuted", _permuted), NARROW),),
    "unwritten_elements": ((_after("unwritten_elements", _unwritten), NARROW),),
    "corrupted_elements": ((_after("corrupted_elements", _corrupted), NARROW),),
    "wrong_dtype": (
        (_after("wrong_dtype", lambda r, y: _narrow(FLOAT16)(y)), ONE),
        (_after("wrong_dtype", lambda r, y: _narrow(FLOAT32)(y)), WIDE),
    ),
    "flush_to_zero": ((_flushed, ONE),),
    "argument_reduction": ((_elementwise("argument_reduction", "sin", _reduced, 3e4, -3e4), ONE),),
    "fast_approximation": (
        (_elementwise("fast_approximation", "exp tanh sigmoid atan sin", _fast, 3.0, 0.1), ONE),
    ),
    "erf_cancellation": ((_elementwise("erf_cancellation", "gelu", _erf_form, 5.0, -5.0), NARROW),),
    "tanh_gelu": ((_elementwise("tanh_gelu", "gelu", _tanh_form, 4.0, -4.0), NARROW),),
    "erf_gelu": (
        (
            _elementwise("erf_gelu", "gelu_tanh", lambda r, x: exact("gelu", x), 4.0, -4.0),
            NARROW,
        ),
    ),
    **slips.FAULTS,
}


def _blocked_first(inputs: Arrays) -> Array:
    """A chain of FMAs that starts at the bias, rounded to float32 once more than FMAs are."""
    x, weight = inputs["x"].astype(np.float64), inputs["weight"].astype(np.float64)
    total = np.broadcast_to(inputs["bias"], (len(x), len(weight))).astype(np.float32)
    for k in range(x.shape[1]):
        total = (x[:, k : k + 1] * weight[:, k] + total).astype(np.float32)
    return total


def generator(number: int, kind: int, shape: tuple[int, int], seed: int) -> np.random.Generator:
    """The random numbers of one planted kernel, the same for every dtype."""
    return np.random.default_rng([number, kind, shape[1], seed])


def planted(seeds: int) -> Iterator[tuple[str, Planted]]:
    """Every fault in every dtype where it makes sense, at every shape, with `seeds` seeds each."""
    for number, (cause, kinds) in enumerate(FAULTS.items()):
        for kind, (build, dtypes) in enumerate(kinds):
            for dtype in dtypes:
                for shape in SHAPES:
                    for seed in range(seeds):
                        rng = generator(number, kind, shape, seed)
                        yield f"{cause}-{dtype}-{shape}-{seed}", build(rng, shape, dtype)


def right(count: int) -> Iterator[tuple[str, Planted]]:
    """Right kernels: products forward and backward, LayerNorm forward and backward with several
    variances and forms, functions."""
    builders = (_right_linear, _right_linear_backward, _right_norm, _right_norm, _right_function)
    for seed in range(count):
        rng = np.random.default_rng([1000, seed])
        shape = SHAPES[seed // len(builders) % len(SHAPES)]
        dtype = (FLOAT32, FLOAT32, FLOAT16, FLOAT64, BFLOAT16)[int(rng.integers(5))]
        yield f"right-{seed}", builders[seed % len(builders)](rng, shape, dtype)


def _right_linear(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    inputs = linear_inputs(rng, shape, dtype)
    y = Kernel(rng).linear(inputs)
    return Planted(None, "linear", inputs, {"y": y}, dtype=str(dtype))


def _right_linear_backward(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    inputs = linear_inputs(rng, shape, dtype)
    inputs["dy"] = normal(rng, shape[0], 24, dtype=dtype)
    outputs = Kernel(rng).linear_backward(inputs)
    return Planted(None, "linear", inputs, outputs, {}, "backward", str(dtype))


def _right_norm(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    backward = bool(rng.integers(2))
    offset = float(rng.choice([0.0, 1.0, 10.0, 100.0]))
    inputs = norm_inputs(rng, shape, dtype, offset if dtype != FLOAT16 else 0.0, backward)
    variance = str(rng.choice(["two_pass", "welford", "corrected"]))
    options = {"statistics": np.float64} if rng.integers(4) == 0 else {}
    outputs = Kernel(rng).layernorm(inputs, variance=variance, **options)
    direction = "backward" if backward else "forward"
    return Planted(None, "layernorm", inputs, outputs, {}, direction, str(dtype))


def _right_function(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Planted:
    op = str(rng.choice(list(FUNCTIONS)))
    x = rng.uniform(0.0 if op == "log1p" else -4.0, 4.0, shape).astype(dtype)
    y = Kernel(rng).function(op, x)
    return Planted(None, op, {"x": x}, {"y": y}, dtype=str(dtype))
