"""Inputs for any op that is a formula, from its signature: shapes of all sizes, hard numbers."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import ml_dtypes
import numpy as np

from refkernels.arithmetic import formats
from refkernels.op import Direction, Op

KINDS = (
    "normal", "scores", "equal", "integers", "cancelling", "subnormal", "large", "signed zeros",
)  # fmt: skip
DOMAINS: dict[tuple[str, str], Any] = {
    ("kl_div", "target"): np.abs,
    ("cast", "draws"): lambda x: np.abs(x) % 1,
    ("narrow_step", "draws"): lambda x: np.abs(x) % 1,
    **{("scaled_attention", f"descale_{of}"): lambda x: np.abs(x) % 4 + 1 for of in "qkv"},
    ("pow", "x"): lambda x: np.where(x == 0.0, np.ones_like(x), np.abs(x)),
    ("pow", "exponent"): lambda x: np.clip(x, -(2**15), 2**15),  # 2^±2^30 and beyond have no scale
}
"""What an input's numbers become where an op is not defined for all."""
OF_PARAMS = {("einsum", "c")}  # inputs that an op takes with other params than its own
EVEN = {("rotary", "d"), ("ctc_loss", "c")}  # letters of what is taken in pairs
FEW = {(op, "t"): 3 for op in ("linear_attention", "selective_scan", "gated_delta_rule")}
FEW |= {("logcumsumexp", "n"): 20, ("ctc_loss", "t"): 6, ("ctc_loss", "s"): 3}
"""Letters of at most so many: of steps, each of which is computed after the other."""
SHARED = {"selective_scan": ("h", "g")}
"""A letter whose length is a multiple of another's."""
BELOW = {
    ("attention", "lengths"): "n", ("scaled_attention", "lengths"): "n",
    ("combine_experts", "rows"): "r", ("grouped_matmul", "experts"): "g",
    ("adamw_8bit", "m"): "t", ("adamw_8bit", "v"): "u",
}  # fmt: skip
"""Letters that an input's integers are below the length of."""
COUNTED: dict[tuple[str, str], Any] = {
    ("ctc_loss", "target"): lambda i, n: 1 + i % (n["c"] - 1),
    ("ctc_loss", "x_lengths"): lambda i, n: 1 + i % n["t"],
    ("ctc_loss", "target_lengths"): lambda i, n: i % (n["s"] + 1),
}
"""What an input's integers become: labels that are no blank, lengths of sequences."""
HALF = {"rfft": lambda n: n // 2 + 1, "irfft": lambda n: max(2 * n - 2, 1)}
"""How long y's n is."""
CONVOLVED = {"conv1d": (("w", "k"),), "conv2d": (("h", "k"), ("w", "l"))}
"""Axes, with those of the taps: no more taps than places, and y has the places where all fit."""


def whole(rng: np.random.Generator, shape: tuple[int, ...], kind: str, most: int) -> Any:
    """Truth values, or integers below a length: of classes, of a table."""
    return rng.random(shape) < 0.5 if kind == "bool" else rng.integers(0, max(most, 1), shape)


LOW = ("float8_e4m3fn", "float8_e5m2", "int8", "float16", "bfloat16")


def operand(rng: np.random.Generator, shape: tuple[int, ...], kind: str, dtype: str) -> Any:
    """Numbers of a kind, of 8 bits, of 16, or of the dtype."""
    chosen = str(rng.choice([*LOW, dtype]))
    if chosen not in LOW[:3]:
        return numbers(rng, shape, kind, chosen)
    drawn = np.clip(np.asarray(numbers(rng, shape, kind, "float16"), float), -127, 127)
    return drawn.astype(np.dtype(getattr(ml_dtypes, chosen, chosen)))


def numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str, dtype: str) -> Any:
    """Numbers of a kind, rounded to the dtype."""
    format = formats.get(dtype)
    x = rng.standard_normal(shape)
    if kind == "scores":
        x = x * 10.0 ** rng.uniform(0, 4)
    elif kind == "equal":
        x = np.full(shape, float(rng.choice([0.0, 1.0, -3.0, 0.1])))
    elif kind == "integers":
        x = np.round(4.0 * x)
    elif kind == "cancelling":
        x = 1000.0 + 1e-3 * x
    elif kind == "subnormal":
        x = x * format.min_normal
    elif kind == "large":
        x = x * format.max**0.45
    elif kind == "signed zeros":
        x = np.where(rng.random(shape) < 0.5, 0.0 * x, x)
    return formats.round_to(np.clip(x, -format.max, format.max), dtype)


def draw(
    op: Op,
    direction: Direction,
    rng: np.random.Generator,
    dtype: str,
    kind: str | None = None,
    sizes: tuple[tuple[int, ...], int] | None = None,
) -> dict[str, Any]:
    """The inputs of one question; optional ones are left out half of the time. `sizes`: of the
    leading axes, and of every letter."""
    assert op.definition is not None
    signature = op.definition.of(direction).signature
    leading = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3))))
    lengths: dict[str, int] = {}
    if sizes:
        leading = sizes[0]
        lengths = {x: sizes[1] for taken in signature.takes.values() for x in taken.own}
    for letter in (x for taken in signature.takes.values() for x in taken.own):
        lengths.setdefault(letter, int(rng.integers(1, 9)))
    for letter in lengths:
        lengths[letter] += lengths[letter] % 2 if (op.name, letter) in EVEN else 0
        lengths[letter] = int(letter) if letter.isdigit() else lengths[letter]
        lengths[letter] = min(lengths[letter], FEW.get((op.name, letter), lengths[letter]))
    if op.name in SHARED:
        whole_of, part = SHARED[op.name]
        lengths[whole_of] = lengths[part] * (1 + lengths[whole_of] % 2)
    above = dict(lengths)
    for axis, taps in CONVOLVED.get(op.name, ()):
        lengths[taps], lengths[axis] = sorted((lengths[taps], lengths[axis]))
        above[axis] = lengths[axis] - lengths[taps] + 1
    if op.name in HALF:
        above["n"] = HALF[op.name](lengths["n"])
    inputs: dict[str, Any] = {}
    for name, argument in signature.takes.items():
        if argument.optional and ((op.name, name) in OF_PARAMS or rng.random() < 0.5):
            continue
        if argument.optional and argument.kind == "int" and not argument.rows:
            continue  # offsets and tables say where the others' rows are
        own = tuple((above if name == op.cotangent else lengths)[x] for x in argument.own)
        chosen = kind or str(rng.choice(KINDS))
        shape = (leading if argument.rows else ()) + own
        if argument.kind == "float":
            drawn = numbers(rng, shape, chosen, dtype)
            inputs[name] = np.asarray(DOMAINS.get((op.name, name), np.asarray)(drawn))
        elif argument.kind == "low":
            inputs[name] = operand(rng, shape, chosen, dtype)
        else:
            # Of a table, of keys, or of classes.
            chosen = BELOW.get((op.name, name), "v")
            most = lengths.get(chosen, next(iter(lengths.values()), 1))
            drawn = whole(rng, shape, argument.kind, most)
            inputs[name] = COUNTED.get((op.name, name), lambda i, _: i)(drawn, lengths)
    return inputs


def draw_params(
    op: Op, direction: Direction, rng: np.random.Generator, inputs: Any, layout: bool
) -> dict[str, Any]:
    """Params of one of the op's cases, with `layout`, and numbers from the domains that the op
    declares, as far as these inputs fit them. Without `layout`, numbers alone."""
    assert op.definition is not None
    formulas = op.definition
    shown = _params_of_cases(op.cases) if layout else [{}]
    drawn = dict(shown[int(rng.integers(len(shown)))])
    drawn |= {
        name: formulas.domain(name).draw(rng)
        for name, default in op.params.items()
        if isinstance(default, float) and rng.random() < 0.75
    }
    fitting: dict[str, Any] = {}
    for name, value in drawn.items():
        with contextlib.suppress(ValueError):
            formulas.question(direction, inputs, {**fitting, name: value})
            fitting[name] = value
    return fitting


@functools.cache
def _params_of_cases(cases: Any) -> list[dict[str, Any]]:
    """The different params of an op's cases."""
    built = (case.build(case.dtypes[0])[1] for case in cases())
    return list({repr(sorted(params.items())): params for params in built}.values()) or [{}]
