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
from refkernels.op import DIRECTIONS, Case
from refkernels.ops.cases import case

Array = npt.NDArray[Any]
Draw = Callable[[Format, np.random.Generator], tuple[Array, ...]]

LENGTHS = (1, 2, 3, 8, 64, 384, 385, 768, 4096, 65536)
CONDITIONS = (1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14)
SCALES = (-1.1, -1.0, -0.5, 0.5, 0.95, 1.1)  # exponents of the products, as a share of emax
INITIALISATIONS = ("randn", "xavier_uniform", "uniform")
KINDS = ("zeros", "cancelled", "infinities", "nan")
_FEATURES = 768


def matmul() -> list[Case]:
    """Every case of matmul."""
    make = partial(_case, "matmul")
    cases = [make("k_sweep", {"K": k}, partial(_shapes, (m, k), (k, n))) for k, m, n in _sizes()]
    cases += [
        make("ill_conditioned", {"condition": c, "K": 64}, partial(_ill_conditioned, c, 64))
        for c in CONDITIONS
    ]
    cases += [make("single_row", {"K": k}, partial(_shapes, (1, k), (k, 64))) for k in (768, 4096)]
    cases += [
        make("batched", {"a": "3x5x7", "b": "3x7x4"}, partial(_shapes, (3, 5, 7), (3, 7, 4))),
        make("batched", {"a": "2x1x5x7", "b": "3x7x4"}, partial(_shapes, (2, 1, 5, 7), (3, 7, 4))),
        make("batched", {"a": "6x5x33", "b": "33x4"}, partial(_shapes, (6, 5, 33), (33, 4))),
    ]
    cases += [make("scale", {"exponent_over_emax": s}, partial(_scale, s)) for s in SCALES]
    cases.append(make("scale", {"a": "subnormal"}, _subnormal))
    cases += [make("specials", {"kind": kind}, partial(_specials, kind)) for kind in KINDS]
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
            directions = DIRECTIONS if name == bias else DIRECTIONS[:1]
            parameters = {"initialisation": name, "bias": bias}
            draw = partial(_seed_linear, name, bias)
            cases.append(make("seed_linear", parameters, draw, directions))
    cases += [make("k_sweep", {"K": k}, partial(_layer, (m, k), n)) for k, m, n in _sizes()]
    cases += [
        make("single_row", {"K": 768}, partial(_layer, (1, 768), 64)),
        make("batched", {"x": "3x5x33"}, partial(_layer, (3, 5, 33), 7)),
    ]
    cases += [make("scale", {"exponent_over_emax": s}, partial(_layer_scale, s)) for s in SCALES]
    cases += [make("specials", {"kind": kind}, partial(_layer_specials, kind)) for kind in KINDS]
    cases.append(make("invariance", {"M": 37, "K": 385}, partial(_layer, (37, 385), 24)))
    return cases


def _case(op: str, regime: str, parameters: Any, draw: Draw, directions: Any = DIRECTIONS) -> Case:
    """The drawn operands and a normally distributed cotangent."""
    names = ("a", "b", "dc") if op == "matmul" else ("x", "weight", "bias", "dy")

    def arrays(generator: np.random.Generator, dtype: str) -> dict[str, Array]:
        operands = draw(formats.get(dtype), generator)
        cotangent = generator.standard_normal(_output_shape(op, operands))
        return dict(zip(names, (*operands, cotangent), strict=True))

    return case(op, regime, parameters, arrays, directions=directions)


def _output_shape(op: str, operands: tuple[Array, ...]) -> tuple[int, ...]:
    left, right = operands[0].shape, operands[1].shape
    if op == "linear":
        return (*left[:-1], right[0])
    return (*np.broadcast_shapes(left[:-2], right[:-2]), left[-2], right[-1])


def _shapes(
    a: tuple[int, ...], b: tuple[int, ...], format: Format, generator: np.random.Generator
) -> tuple[Array, ...]:
    return generator.standard_normal(a), generator.standard_normal(b)


def _sizes() -> list[tuple[int, int, int]]:
    """Lengths of sums, with fewer rows and columns of long ones."""
    return [(k, 4, 8) if k > 4096 else (k, 16, 24) for k in LENGTHS]


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
