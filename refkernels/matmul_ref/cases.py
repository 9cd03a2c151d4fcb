"""Cases of matmul and linear: lengths, condition numbers, scales, special values, the seed's layer.

All numbers are drawn in float64 from the seed in the name, then rounded to the given dtype.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.matmul_ref.ill_conditioned import ill_conditioned_dot
from refkernels.op import DIRECTIONS, Case, Direction

_SEED = 0
Array = npt.NDArray[Any]
Draw = Callable[[Format, np.random.Generator], tuple[Array, ...]]

LENGTHS = (1, 2, 3, 8, 64, 384, 385, 768, 4096, 65536)
CONDITIONS = (1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14)
SCALES = (-1.1, -1.0, -0.5, 0.5, 0.95, 1.1)  # exponents of the products, as a share of emax
INITIALISATIONS = ("randn", "xavier_uniform", "uniform")
_FEATURES = 768


def matmul() -> list[Case]:
    """Every case of matmul."""
    make = partial(_case, "matmul")
    cases = [make("k_sweep", {"K": k}, partial(_lengths, k)) for k in LENGTHS]
    cases += [
        make("ill_conditioned", {"condition": c, "K": 64}, partial(_ill_conditioned, c, 64))
        for c in CONDITIONS
    ]
    cases += [make("single_row", {"K": k}, partial(_single_row, k)) for k in (768, 4096)]
    cases += [
        make("batched", {"a": "3x5x7", "b": "3x7x4"}, partial(_shapes, (3, 5, 7), (3, 7, 4))),
        make("batched", {"a": "2x1x5x7", "b": "3x7x4"}, partial(_shapes, (2, 1, 5, 7), (3, 7, 4))),
        make("batched", {"a": "6x5x33", "b": "33x4"}, partial(_shapes, (6, 5, 33), (33, 4))),
    ]
    cases += [make("scale", {"exponent_over_emax": s}, partial(_scale, s)) for s in SCALES]
    cases.append(make("scale", {"a": "subnormal"}, _subnormal))
    kinds = ("zeros", "cancelled", "infinities", "nan")
    cases += [make("specials", {"kind": kind}, partial(_specials, kind)) for kind in kinds]
    cases += [
        make("seed_linear", {"initialisation": name}, partial(_seed_matmul, name), ("forward",))
        for name in INITIALISATIONS
    ]
    cases.append(make("invariance", {"M": 37, "K": 385}, partial(_shapes, (37, 385), (385, 24))))
    return cases


def linear() -> list[Case]:
    """Every case of linear."""
    make = partial(_case, "linear")
    cases = []
    for name in INITIALISATIONS:
        for bias in ("zero", "uniform"):
            parameters: dict[str, int | float | str] = {"initialisation": name, "bias": bias}
            both_ = name == "uniform" and bias == "uniform"
            directions = DIRECTIONS if both_ else (DIRECTIONS[0],)
            cases.append(
                make("seed_linear", parameters, partial(_seed_linear, name, bias), directions)
            )
    cases += [make("k_sweep", {"K": k}, partial(_linear_lengths, k)) for k in LENGTHS]
    cases += [
        make("single_row", {"K": 768}, partial(_layer, (1, 768), 64)),
        make("batched", {"x": "3x5x33"}, partial(_layer, (3, 5, 33), 7)),
    ]
    cases += [make("scale", {"exponent_over_emax": s}, partial(_layer_scale, s)) for s in SCALES]
    kinds = ("zeros", "cancelled", "infinities", "nan")
    cases += [make("specials", {"kind": kind}, partial(_layer_specials, kind)) for kind in kinds]
    cases.append(make("invariance", {"M": 37, "K": 385}, partial(_layer, (37, 385), 24)))
    return cases


_NAMES = {"matmul": ("a", "b", "dc"), "linear": ("x", "weight", "bias", "dy")}


def _case(
    op: str,
    regime: str,
    parameters: dict[str, int | float | str],
    draw: Draw,
    directions: tuple[Direction, ...] = DIRECTIONS,
) -> Case:
    shown = [f"{k}={v}" if isinstance(v, str) else f"{k}={v:g}" for k, v in parameters.items()]
    label = f"{op}/{regime}[{','.join([*shown, f'seed={_SEED}'])}]"
    build = partial(_build, op, draw)
    return Case(label, op, regime, parameters, _SEED, build, directions=directions)


def _build(op: str, draw: Draw, dtype: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The drawn operands and a normally distributed cotangent, in the dtype."""
    format = formats.get(dtype)
    generator = np.random.default_rng(_SEED)
    operands = draw(format, generator)
    shape = _output_shape(op, operands)
    names = _NAMES[op]
    drawn = (*operands, generator.standard_normal(shape))
    return {n: formats.round_to(v, format) for n, v in zip(names, drawn, strict=True)}, {}


def _output_shape(op: str, operands: tuple[Array, ...]) -> tuple[int, ...]:
    left, right = operands[0].shape, operands[1].shape
    if op == "linear":
        return (*left[:-1], right[0])
    return (*np.broadcast_shapes(left[:-2], right[:-2]), left[-2], right[-1])


def _shapes(
    a: tuple[int, ...], b: tuple[int, ...], format: Format, generator: np.random.Generator
) -> tuple[Array, ...]:
    return generator.standard_normal(a), generator.standard_normal(b)


def _lengths(k: int, format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    rows, columns = (4, 8) if k > 4096 else (16, 24)
    return _shapes((rows, k), (k, columns), format, generator)


def _single_row(k: int, format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    return _shapes((1, k), (k, 64), format, generator)


def _ill_conditioned(
    condition: float, terms: int, format: Format, generator: np.random.Generator
) -> tuple[Array, ...]:
    """Rows that are powers of two apart, so that every answer has the condition number."""
    x, y = ill_conditioned_dot(generator, terms, 8, condition, format)
    return np.array([[1.0], [-2.0], [0.5], [4.0]]) * x.astype(np.float64), y.astype(np.float64)


def _scale(share: float, format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    """Products of about 2^(share * emax): subnormal results below -1, overflow above 1."""
    power = round(share * format.emax)
    a, b = _shapes((7, 8), (8, 5), format, generator)
    return np.ldexp(a, power // 2), np.ldexp(b, power - power // 2)


def _subnormal(format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    a, b = _shapes((7, 8), (8, 5), format, generator)
    return np.ldexp(a, format.emin - 3), b


def _specials(kind: str, format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    """Zero rows and columns with both signs; sums that cancel exactly; +-inf against finite, zero
    and opposite infinities; one NaN on either side."""
    a, b = _shapes((6, 8), (8, 5), format, generator)
    if kind == "zeros":
        a[1], a[2], b[:, 3] = 0.0, -0.0, 0.0
    elif kind == "cancelled":
        a, b = (formats.round_to(x, format).astype(np.float64) for x in (a, b))
        a[:, 4:], b[4:] = a[:, 3::-1], -b[3::-1]
    elif kind == "infinities":
        a[1, 2], a[2, 3], a[3, 1], a[3, 4] = math.inf, -math.inf, math.inf, math.inf
        b[2, 0], b[5, 4] = 0.0, -math.inf
    else:
        a[2, 3], b[6, 1] = math.nan, math.nan
    return a, b


def _layer(
    shape: tuple[int, ...], out: int, format: Format, generator: np.random.Generator
) -> tuple[Array, ...]:
    x, weight = _shapes(shape, (out, shape[-1]), format, generator)
    return x, weight, generator.standard_normal(out)


def _linear_lengths(k: int, format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    rows, columns = (4, 8) if k > 4096 else (16, 24)
    return _layer((rows, k), columns, format, generator)


def _layer_scale(share: float, format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    a, b = _scale(share, format, generator)
    return a, b.T, np.ldexp(generator.standard_normal(5), round(min(share, 0.75) * format.emax))


def _layer_specials(kind: str, format: Format, generator: np.random.Generator) -> tuple[Array, ...]:
    a, b = _specials(kind, format, generator)
    bias = np.array([0.0, -0.0, 1.0, -1.0, 0.5])
    if kind in ("zeros", "cancelled"):
        bias[:] = 0.0
    elif kind == "infinities":
        bias[1], bias[4] = math.inf, -math.inf
    else:
        bias[4] = math.nan
    return a, b.T, bias


def _weight(initialisation: str, generator: np.random.Generator) -> Array:
    """randn; Xavier (Glorot) uniform; uniform within 1 / sqrt(fan in), as torch's Linear."""
    shape = (_FEATURES, _FEATURES)
    if initialisation == "randn":
        return generator.standard_normal(shape)
    fans = 2 * _FEATURES / 6 if initialisation == "xavier_uniform" else _FEATURES
    return generator.uniform(-1.0, 1.0, shape) / math.sqrt(fans)


def _seed_linear(
    initialisation: str, bias: str, format: Format, generator: np.random.Generator
) -> tuple[Array, ...]:
    """Inputs of an issue in which two frameworks' Linear layers differ: x is 10 times normal."""
    x = 10.0 * generator.standard_normal((32, _FEATURES))
    weight = _weight(initialisation, generator)
    shift = generator.uniform(-1.0, 1.0, _FEATURES) / math.sqrt(_FEATURES)
    return x, weight, np.zeros(_FEATURES) if bias == "zero" else shift


def _seed_matmul(
    initialisation: str, format: Format, generator: np.random.Generator
) -> tuple[Array, ...]:
    """The product of the same inputs without the layer."""
    x, weight, _ = _seed_linear(initialisation, "zero", format, generator)
    return x, weight.T
