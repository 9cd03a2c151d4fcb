"""Kernels whose formula is right, and whose arithmetic is not: constants, functions of libraries
and of GPUs, results in narrower formats, flushes, limits. Each is named for what it does, and what
only looks like one of them is not."""

from __future__ import annotations

import itertools
import math
from functools import partial, reduce
from typing import Any

import ml_dtypes
import numpy as np
import planting
from hunting import one_in
from numpy_kernels import ERF, F, cast, cut, layernorm, log_softmax, normal, softmax

from refkernels.arithmetic import formats
from refkernels.contexts.special_functions import FAST, ex2, lg2, rcp

PLANTED: list[planting.Planted] = []
of = partial(planting.Asked, PLANTED)
BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(31)


def wide(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    return scale * np.random.default_rng(seed).standard_normal(shape)


# --- constants of GELU, in float64 ----------------------------------------------------------------

K, C = math.sqrt(2 / math.pi), 0.044715


def by_tanh(x: Any, k: Any, c: Any = C) -> Any:
    return 0.5 * x * (1 + np.tanh(k * (x + c * x**3)))


fault = of("gelu_tanh", {"x": wide(300, seed=5)}, float)
for k, c, told in (
    (K, F(C), "0.0447149984539, 0.797884560803"),
    (F(K), F(C), "0.0447149984539, 0.797884583473"),
    (F(K), C, "0.044715, 0.797884583473"),
):
    fault("float32_constants", partial(by_tanh, k=k, c=c), constants=told)
for k in (0.7978845608, 0.8, 0.79788456):  # 1 / 0.8 is 1.25, a bfloat16
    fault("rounded_constants", partial(by_tanh, k=k), constants=f"0.044715, {k}")
fault = of("gelu", {"x": wide(300, seed=5)}, float)
for root in (lambda x: x / F(math.sqrt(2.0)), lambda x: x * F(math.sqrt(0.5))):
    fault("float32_constants", lambda x, by=root: 0.5 * x * (1 + ERF(by(x))))

# --- exponentials and logarithms of libraries ---------------------------------------------------


def coarse(x: Any) -> Any:
    """nnacl's exp: 2^n p(x - 0.693147 n), p of degree 5; only the difference by FMA."""
    n = np.rint(x / F(0.693147))
    rest = (x.astype(np.float64) - n * np.float64(F(0.693147))).astype(F)
    power = np.full_like(rest, F(1.0 / 120.0))
    for divisor in (24.0, 6.0, 2.0, 1.0, 1.0):
        power = power * rest + F(1.0 / divisor)
    return power * np.exp2(n)


def series(x: Any) -> Any:
    """Taylor's of degree 6, whose errors are as large, and lie elsewhere."""
    n = np.floor(x / np.log(2.0))
    rest = x.astype(np.float64) - n * np.log(2.0)
    return (sum(rest**k / math.factorial(k) for k in range(7)) * np.exp2(n)).astype(F)


def of_exponentials(x: Any, exp: Any) -> Any:
    e = exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def clamped(x: Any, dy: Any, least: float) -> Any:
    """The gradient of the logarithm of a sum."""
    top = x.max(-1, keepdims=True)
    y = top + np.log(np.exp(x - top).sum(-1, keepdims=True))
    return dy[:, None] * np.exp(np.maximum(x - y, x.dtype.type(least)))


def log_by_table(x: float) -> float:
    """One logarithm, as oneDNN's code does it: with a biased exponent and a table for 127 ln 2."""
    half, exponent = math.frexp(x)
    m, biased = 2.0 * half, exponent + 126
    i = int((m - 1.0) * 32)
    inverse = round(32 / (1 + (i + 0.5) / 32)) / 32
    if i >= 16:
        m, biased, inverse = m / 2.0, biased + 1, inverse * 2.0
    entry = float(F(-math.log(inverse) - 127 * math.log(2.0)))
    high = float(F(biased * float(F(math.log(2.0))) + entry))
    return float(F(float(F(math.log1p(float(F(m * inverse - 1.0))))) + high))


def by_table(x: Any) -> Any:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.vectorize(log_by_table)(np.exp(shifted).sum(-1, keepdims=True)).astype(F)


def dx_by_table(dloss: Any, x: Any, target: Any) -> Any:
    return (np.exp(by_table(x)) - np.eye(x.shape[1], dtype=F)[target]) * F(1.0 / len(x))


fault = of("softmax", {"x": normal(16, 17, scale=1.5)})
fault("coarse_exponential", partial(of_exponentials, exp=coarse))
fault = of("softmax", {"x": normal(32, 40, scale=3.0)})
fault.never("coarse_exponential", partial(of_exponentials, exp=series))
fault = of("swiglu", {name: RNG.uniform(-60.0, 10.0, 2000).astype(F) for name in "ab"})
fault("coarse_exponential", lambda a, b: a / (F(1.0) + coarse(-a)) * b)
for kind, least in ((F, -88.723), (np.float64, -709.784)):
    x, dy = RNG.uniform(-1e4, 1e4, (8, 50)).astype(kind), wide(8).astype(kind)
    fault = of("logsumexp", {"x": x, "dy": dy}, kind)
    fault("exponential_clamped", partial(clamped, least=least))
x = wide(9, 40) * (np.arange(9) % 3 > 0)[:, None]
for offset in (0.25, 1e6):  # an error at an exact zero is beyond all numbers in units of the least
    fault = of("swiglu", {"a": x, "b": x + 1.0}, float)
    fault.never("exponential_clamped", lambda a, b, off=offset: a / (1 + np.exp(-a)) * b + off)
    fault = of("log_softmax", {"x": x[:, :1]}, float)
    fault.never("exponential_clamped", lambda x, off=offset: 0 * x + off)
x, rows_noise = wide(64, 4), 1.0 + 0.01 * wide(64, seed=1)
x[0] = 1.0, 1.5 * 2.0**-53, -1.0, -1.5 * 2.0**-53 * (1.0 + 1e-7)  # of which nearly nothing is left
fault = of("sum", {"x": x}, float, axis=-1)
fault.never("exponential_clamped", lambda x: x.sum(-1) * rows_noise)
x[0] = np.log([0.1, 0.2, 0.3, 0.4])
fault = of("logsumexp", {"x": x}, float)
fault.never("exponential_clamped", lambda x: np.log(np.exp(x).sum(-1)) * rows_noise)
x, dy, slope_noise = RNG.uniform(-1e3, 1e3, (12, 9)), wide(12, 9), 1 + 0.01 * wide(12, 9, seed=1)
x[0], dy[0], slope_noise[0] = wide(9), 0.7, 1.0  # the gradient is 0 there, but for roundings
fault = of("softmax", {"x": x, "dy": dy}, float)
y = lambda x, dy: softmax(x) * (dy - (softmax(x) * dy).sum(-1, keepdims=True)) * slope_noise  # noqa: E731
fault.never("exponential_clamped", y)
for rows, classes, scale in ((8, 2, 1.0), (32, 10, 3.0), (24, 200, 1.0)):
    x = normal(rows, classes, seed=5, scale=scale)
    if classes < 200:
        of("log_softmax", {"x": x})("tabulated_logarithm", by_table)
    labelled = {"x": x, "target": np.arange(rows) % classes, "dloss": np.array(1, F)}
    of("cross_entropy", labelled)("tabulated_logarithm", dx_by_table)

# --- functions of GPUs --------------------------------------------------------------------------


def exp(x: Any) -> Any:
    return ex2(x * F(1.442695))


LN2, TANH = F(0.6931472), FAST["tanh"][0]
WRITTEN = {
    "log1p": lambda x: lg2(F(1) + x) * LN2,
    "expm1": lambda x: exp(x) - F(1),
    "sinh": lambda x: F(0.5) * (exp(x) - exp(-x)),
    "cosh": lambda x: F(0.5) * (exp(x) + exp(-x)),
    "tanh": lambda x: (exp(x + x) - F(1)) * rcp(exp(x + x) + F(1)),
    "silu": lambda x: x * rcp(F(1) + exp(-x)),
    "softplus": lambda x: lg2(F(1) + exp(x)) * LN2,
    "gelu_tanh": lambda x: x / 2 * (1 + TANH(F(0.79788456) * (x + F(0.044715) * x * x * x))),
    "log_sigmoid": lambda x: -(lg2(F(1) + exp(-x)) * LN2),
}
for op, written in WRITTEN.items():
    x = RNG.uniform(-0.9 if op == "log1p" else -9.0, 9.0, 600)
    fault = of(op, {"x": x.astype(np.float16 if op == "gelu_tanh" else F)})
    fault("special_function_unit", written)
fault = of("softplus", {"x": RNG.uniform(-12.0, 9.0, 600).astype(F)})
fault("unstable_identity", lambda x: np.log(F(1) + np.exp(x)))

# --- float64 by float32 ---------------------------------------------------------------------------


def coarse_softplus(x: Any) -> Any:
    """log(1 + e^x) in float32, with an exponential of 17 bits; x itself beyond 20."""
    e = np.exp(x.astype(F)) * F(1 + 2**-17)
    return np.where(x > 20, x, np.log(1 + e).astype(np.float64))


def coarse_log_softmax(x: Any) -> Any:
    """In float32, with an exponential of 17 bits."""
    z = x.astype(F) - x.astype(F).max(-1, keepdims=True)
    e = np.exp(z) * (1 + F(2**-17) * np.cos(z))
    return (z - np.log(e.sum(-1, keepdims=True))).astype(np.float64)


def saturated(x: Any) -> Any:
    return np.where(np.abs(x) > 5, np.sign(x), np.tanh(x))


def smoothed(x: Any, target: Any) -> Any:
    """Paddle's cross entropy in float64: its one-hot labels are float32."""
    labels = F(0.9) * np.eye(x.shape[1], dtype=F)[target] + F(0.1) / F(x.shape[1])
    return -(labels * log_softmax(x)).sum(-1)


def rounded_x(x: Any, weight: Any, eps: float = 1e-5) -> Any:
    """OneFlow's RMSLayerNorm in float64, with and without eps in float32."""
    return cast(x) / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps) * weight


for scale in (1.0, 10.0):
    of("softplus", {"x": wide(6, 20, scale=scale)}, float)("float32_cast", coarse_softplus)
    of("log_softmax", {"x": wide(6, 20, scale=scale)}, float)("float32_cast", coarse_log_softmax)
fault = of("softmax", {"x": wide(6, 9)}, F)
fault("float32_cast", softmax)
fault = of("log_softmax", {"x": wide(6, 20)}, float)  # the same errors, without float32's numbers
fault.never("float32_cast", lambda x: coarse_log_softmax(x) * (1 + 2.0**-45))
fault = of("tanh", {"x": wide(6, 20, scale=6.0)}, float)
fault.never("float32_cast", saturated)
fault = of("softplus", {"x": wide(6, 20)}, float)
fault.never("float32_cast", lambda x: np.logaddexp(0, x.astype(F) * F(1.01)))
for op in ("log", "sqrt"):  # of negative numbers
    fault = of(op, {"x": -1 - abs(wide(6, 20))}, float)
    fault.never("float32_cast", lambda x: cast(np.log(-x)))
affine = {"x": wide(48, 96), "weight": wide(96, seed=1), "bias": wide(96, seed=2)}
of("layernorm", affine)("float32_cast", layernorm)
of("layernorm", affine, float)("wrong_dtype", lambda **a: cast(layernorm(**a)), format="float32")
ENDS = itertools.product((2.0**-900, 1.0, 2.0**900), (2.0**-20, 0.3, 2.0**20))
for size, factor in one_in(2, ENDS):
    fault = of("linear", {"x": size * wide(24, 65), "weight": wide(40, 65, seed=1)}, float)
    fault("scale_factor", lambda x, weight, by=factor: x @ weight.T * by, interval=factor)
labelled = {"x": wide(24, 7, seed=11), "target": np.arange(24) % 7}
fault = of("cross_entropy", labelled, float, reduction="none", label_smoothing=0.1)
fault("float32_labels", smoothed)
fault = of("rms_norm", {"x": wide(12, 32), "weight": RNG.uniform(0.5, 2.0, 32)}, float, eps=1e-5)
for eps in (1e-5, float(F(1e-5))):
    fault("intermediate_rounded", partial(rounded_x, eps=eps), format="float32")
given = {"x": wide(500), "target": RNG.uniform(0.01, 1, 500)}
fault = of("kl_div", given, float, reduction="none")
fault("float32_functions", lambda x, target: target * (cast(np.log(cast(target))) - x))
fault(None, lambda x, target: target * (np.log(target) - x))

# --- truncated, and in narrow formats -------------------------------------------------------------

PRODUCT = {"x": normal(24, 64), "weight": normal(24, 64, seed=1)}
LINES = {"x": 10 + normal(48, 64), "weight": normal(64, seed=1)}


def by_statistics(x: Any, weight: Any, kept: Any) -> Any:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    mean, rstd = (kept(a).astype(F) for a in (mean, 1 / np.sqrt(var + F(1e-5))))
    return (x - mean) * rstd * weight


def by_squares(x: Any, weight: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(np.square(x).mean(-1, keepdims=True) - mean**2 + F(1e-5)) * weight


def accumulated(x: Any, weight: Any, format: Any) -> Any:
    total = np.zeros((24, 24), F)
    for k in range(64):
        total = cast(total + x[:, k : k + 1] * weight[:, k], format)
    return total


def by_groups(x: Any, groups: int) -> Any:
    return sum(reduce(np.add, x[k::groups].astype(np.float16)).astype(F) for k in range(groups))


fault = of("sum", {"x": normal(40, 48).astype(np.float16)}, F, axis=0)
fault("sums_by_groups_rounded", partial(by_groups, groups=4), groups=4)
fault(None, lambda x: x.sum(0))
fault = of("mean", {"x": normal(200, 40).astype(np.float16)}, F, axis=0)
fault("running_sum_rounded", lambda x: by_groups(x, 1) / F(200), part="x", format="float16")
kept = lambda a, b: cast(np.logaddexp(a, b), np.float16)  # noqa: E731
fault = of("logcumsumexp", {"x": normal(12, 130).astype(np.float16)})
fault("intermediate_rounded", lambda x: np.stack([*itertools.accumulate(x.T, kept)], 1))
narrow = {"dy": normal(70, 64), "x": normal(70, 64, seed=1), "bias": normal(64, seed=2)}
fault = of("layernorm", {name: array.astype(BF16) for name, array in narrow.items()})
fault("narrow_intermediates", lambda dy, **_: {"dbias": reduce(np.add, dy.astype(BF16))})
fault = of("linear", PRODUCT, float)
fault("truncated_output", lambda x, weight: cut(x @ weight.T, F))
fault("truncated_output", lambda x, weight: cut(x @ weight.T, BF16))
fault = of("linear", PRODUCT)
fault("bf16_inputs", lambda x, weight: cast(x, BF16) @ cast(weight, BF16).T)
fault("truncated_inputs", lambda x, weight: cut(x, BF16).astype(F) @ cut(weight, BF16).astype(F).T)
fault.consistent("fp16_accumulation", partial(accumulated, format=np.float16))
fault = of("linear", {**PRODUCT, "x": PRODUCT["x"] * F(2.0**-18)})  # below its normal numbers
fault("fp16_inputs", lambda x, weight: cast(x, np.float16) @ cast(weight, np.float16).T)
fault = of("layernorm", LINES)
fault("truncated_statistics", partial(by_statistics, kept=partial(cut, dtype=np.float16)))
fault = of("layernorm", {**LINES, "x": LINES["x"] + 290})
fault("naive_variance", by_squares)
x = RNG.uniform(-3e4, 3e4, 2000).astype(F)
of("sin", {"x": x}).consistent("argument_reduction", lambda x: np.sin(x % F(2 * math.pi)))
x = RNG.uniform(0.1, 3.0, 600).astype(F)
fast = lambda x: np.exp(x) * (1 + 2.0**-16 * RNG.uniform(-1, 1, 600))  # noqa: E731
of("exp", {"x": x}, float).consistent("fast_approximation", fast)

# --- one result in a narrower format ------------------------------------------------------------

HEADS = {name: wide(3, 3, 9, 8, seed=seed) for seed, name in enumerate("qkv")}
SCORES = "matmul(q, k) 1 / sqrt(8)"
WEIGHTS = "where(…, exp(… - …), 0) / where(…, sum(where(…, …, 0)), 1)"


def in_steps(x: Any, **casts: Any) -> Any:
    """A softmax; `casts`: of its difference, its exponentials and their sum."""
    kept = {name: casts.get(name, lambda array: array) for name in ("difference", "e", "total")}
    e = kept["e"](np.exp(kept["difference"](x - x.max(-1, keepdims=True))))
    return e / kept["total"](e.sum(-1, keepdims=True))


def masked(q: Any, k: Any, v: Any, of_scores: Any = np.copy, of_weights: Any = np.copy) -> Any:
    scores = of_scores(q @ k.swapaxes(-1, -2) * q.dtype.type(8**-0.5))
    return of_weights(softmax(np.where(np.tri(9, dtype=bool), scores, -np.inf))) @ v


fault = of("softmax", {"x": wide(14, 20, scale=3)}, float)
fault("intermediate_rounded", partial(in_steps, difference=cast), intermediate="x - max(x)")
fault("intermediate_rounded", partial(in_steps, e=cast), intermediate="exp(x - max(x))")
fault("float32_statistics", partial(in_steps, total=cast))
noise = 1 + RNG.uniform(-1, 1, (14, 20)) * 2.0**-25
fault.never("intermediate_rounded", lambda x: softmax(x) * noise)
for kind, narrow in ((np.float64, F), (F, ml_dtypes.bfloat16), (F, np.float16)):
    inputs = {name: array.astype(kind) for name, array in HEADS.items()}
    fault, to = of("attention", inputs, kind, causal="top_left"), partial(cast, format=narrow)
    fault("intermediate_rounded", partial(masked, of_scores=to), intermediate=SCORES)
    fault("intermediate_rounded", partial(masked, of_weights=to), intermediate=WEIGHTS)
    fault(None, masked)

# --- cosines and sines of rotary embeddings in a narrower format --------------------------------

PLACES = np.random.default_rng(1).permutation(3000)[:40] + 1


def turned(x: Any, tables: Any, **_: Any) -> Any:
    cosine, sine = (table.astype(x.dtype) for table in tables)
    a, b = x[..., :8], x[..., 8:]
    return np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=-1)


def tables(format: Any) -> tuple[Any, Any]:
    angles = PLACES[:, None] * 10000.0 ** (-np.arange(0, 16, 2) / 16)
    return np.cos(angles).astype(format), np.sin(angles).astype(format)


for kind, format in ((np.float64, "float32"), (F, "float16"), (F, "bfloat16")):
    x, both = wide(40, 16).astype(kind), tables(formats.get(format).storage)
    fault = of("rotary", {"x": x, "position": PLACES}, kind)
    told = {"format": format, "with": "intermediate_rounded"}  # of cosines and of sines
    fault("intermediate_rounded", partial(turned, tables=both), **told)
    fault = of("rotary", {"x": x, "position": PLACES, "dy": x}, kind)
    fault("intermediate_rounded", partial(turned, tables=(both[0], -both[1])), **told)
far = of("rotary", {"x": normal(40, 16), "position": PLACES + 300})
angles = (PLACES + 300).astype(ml_dtypes.bfloat16)[:, None] * 10000.0 ** (-np.arange(8) / 8)
places = partial(turned, tables=(np.cos(angles), np.sin(angles)))
far("intermediate_rounded", places, format="bfloat16")

# --- flushes and limits ---------------------------------------------------------------------------


def flushed(x: Any) -> Any:
    """Subnormal numbers as zeros, with their sign."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def slopes_of_atan2(dy: Any, a: Any, b: Any, keep: Any = flushed) -> dict[str, Any]:
    dy, a, b = keep(dy), keep(a), keep(b)
    square = keep(keep(a * a) + keep(b * b))
    return {"da": keep(keep(dy * b) / square), "db": keep(keep(-dy * a) / square)}


def slope_of_log_sigmoid(dy: Any, x: Any, keep: Any) -> Any:
    """(dy / s) (s (1 - s)), which is NaN where s underflows: 0 / 0."""
    s = keep(F(1) / (F(1) + keep(np.exp(-x))))
    return keep(keep(dy / s) * keep(s * (F(1) - s)))


def softplus(x: Any, threshold: float = 20.0) -> Any:
    """PyTorch's."""
    return np.where(x > threshold, x, np.logaddexp(0, x))


for kind in (F, np.float64):
    rng = np.random.default_rng(4)
    sizes = np.exp(np.log(np.finfo(kind).tiny) * rng.uniform(0, 0.62, 400))
    a, b = rng.choice([-1.0, 1.0], (2, 400)) * sizes * rng.uniform(0.5, 2.0, (2, 400))
    given = {"dy": wide(400), "a": a, "b": b}
    fault = of("atan2", {name: array.astype(kind) for name, array in given.items()}, kind)
    fault("flush_to_zero", slopes_of_atan2)
    fault.never("flush_to_zero", partial(slopes_of_atan2, keep=np.copy))
    x = np.concatenate([RNG.uniform(-9.0, 9.0, 360), RNG.uniform(4.9, 5.1, 40)]).astype(kind)
    fault = of("tanh", {"x": x}, kind)
    fault("beyond_threshold", saturated, returns="-1 / 1", where="|x| > 5")
larger = 16 * np.finfo(F).tiny  # below which no processor flushes
given = {name: array.astype(F) for name, array in given.items()}
of("atan2", given).unsure(
    "flush_to_zero", partial(slopes_of_atan2, keep=lambda x: np.where(abs(x) < larger, 0 * x, x))
)
fault = of("log_sigmoid", {"x": RNG.uniform(-120, 60, 500).astype(F), "dy": normal(500)})
for keep in (flushed, np.copy):
    fault("log_of_sigmoid", partial(slope_of_log_sigmoid, keep=keep))
fault = of("reciprocal", {"x": RNG.uniform(1e38, 3e38, 64).astype(F)})
fault("flush_to_zero", lambda x: 0 * x)
x = np.array([-3.7e-39, 5.7e-39, 3.2e-39], F)  # on which the gradient does not depend
fault = of("cumsum", {"x": x, "dy": np.array([0.0, 1.4, 0.8], F)})
fault.never("flush_to_zero", lambda x, dy: np.zeros(3))
dy = wide(400)
dy[[3, 7, 9]] = np.nan, np.inf, -np.inf  # a zero in their place is no flush
fault = of("cospi", {"x": np.full(400, 1e-310), "dy": dy}, float)
fault.never(
    "flush_to_zero", lambda x, dy: np.nan_to_num(-(math.pi**2) * x * dy, posinf=0, neginf=0)
)
mixed = np.concatenate([RNG.uniform(-25.0, 45.0, 260), RNG.uniform(19.0, 21.0, 40)])
fault = of("softplus", {"x": mixed}, float)
fault("beyond_threshold", softplus, returns="x", where="x > 20", threshold=20.0, interval=20.0)
fault(None, partial(softplus, threshold=37.0))
fault = of(
    "softplus", {"x": np.random.default_rng(1).uniform(10.0, 40.0, 300)}, float
)  # where log(1 + e^x) is right
fault("beyond_threshold", softplus)
fault = of("softplus", {"x": mixed, "dy": wide(300)}, float)
fault("beyond_threshold", lambda x, dy: np.where(x > 20.0, dy, dy / (1 + np.exp(-x))), returns="dy")
for before, beyond in ((300, 2), (2, 300), (8, 8)):
    x = np.concatenate([RNG.uniform(-5.0, 19.0, before), RNG.uniform(21.0, 30.0, beyond)])
    of("softplus", {"x": x}, float).unsure("beyond_threshold", softplus)
x = np.sort(RNG.uniform(-5.0, 5.0, 200))
fault = of("exp", {"x": x}, float)  # memory that was not written is as likely
for cause in ("beyond_threshold", "unwritten_elements"):
    fault.unsure(cause, lambda x: np.where(np.arange(200) < 150, np.exp(x), 0))
fault = of("exp", {"x": RNG.permutation(x)}, float)
fault("beyond_threshold", lambda x, least=x[150]: np.where(x < least, np.exp(x), 0))
x = RNG.uniform(-110.0, 20.0, 500).astype(F)  # an overflow or a flush is no threshold
of("sigmoid", {"x": x}).never("beyond_threshold", lambda x: F(1) / (F(1) + np.exp(-x)))
of("exp", {"x": x}).never("beyond_threshold", lambda x: flushed(np.exp(x)))
for cause in ("unstable_identity", "beyond_threshold"):
    of("silu", {"x": x}).unsure(cause, lambda x: x * flushed(F(1) / (F(1) + np.exp(-x))))
fault = of("hardsigmoid", {"x": np.linspace(-1000, 1000, 301).astype(F)})  # 0 and 1 beyond 3
fault.never("beyond_threshold", lambda x: np.clip(x / F(6) + F(0.5), 0, 1) + F(1e-3))


@planting.each(PLANTED)
def test_a_fault_of_arithmetic_is_proven_and_a_right_kernel_is_not_blamed(
    planted: planting.Planted,
) -> None:
    planted.check()
