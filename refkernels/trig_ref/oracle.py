"""Certified sin, cos, tan and their backward passes, for every float16, bfloat16, float32 and
float64.

Two tiers: double-doubles (kernels.py), relative radius below 2^-99; for what a question still
leaves open, multiple precision (exact.py).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.jit import check_subnormals, njit, prange
from refkernels.arithmetic.question import Certify, Question
from refkernels.trig_ref import exact
from refkernels.trig_ref.kernels import CODES, gradient, value

_CHUNK = 1024


@njit(parallel=True)
def _values(code: int, x: Any, hi: Any, lo: Any, radius: Any, scale: Any) -> None:
    for chunk in prange((x.size + _CHUNK - 1) // _CHUNK):
        for i in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, x.size)):
            hi[i], lo[i], radius[i], scale[i] = value(code, x[i])


@njit(parallel=True)
def _gradients(code: int, dy: Any, x: Any, hi: Any, lo: Any, radius: Any, scale: Any) -> None:
    for chunk in prange((x.size + _CHUNK - 1) // _CHUNK):
        for i in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, x.size)):
            hi[i], lo[i], radius[i], scale[i] = gradient(code, dy[i], x[i])


def sin(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """The sine of every element, in radians.

    x: any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`).
    Relative radius <= 2^-101; sin(±0) = ±0 exactly; infinities and NaN give NaN.
    Raises TypeError for other dtypes and ValueError for an unknown question.
    Source: Payne and Hanek (1983), doi:10.1145/1057600.1057602, and the budget in kernels.py.
    """
    return _forward("sin", x, certify)


def cos(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """The cosine of every element; as `sin`. Relative radius <= 2^-101; cos(±0) = 1 exactly."""
    return _forward("cos", x, certify)


def tan(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """The tangent of every element; as `sin`. Relative radius <= 2^-100; tan(±0) = ±0 exactly."""
    return _forward("tan", x, certify)


def backward(name: str, dy: Any, x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """dx = dy f'(x): dy cos x for "sin", -dy sin x for "cos", dy (1 + tan² x) for "tan".

    dy and x: arrays of one shape. Relative radius <= 2^-99. Special values are those of one IEEE
    product dy · f'(x): dy = ±0 gives a zero of the product's sign, dy = ±inf an infinity (NaN
    where f'(x) = 0), a NaN in dy and any x that is not finite give NaN.
    Raises TypeError for other dtypes, ValueError for other names and for shapes that differ.
    """
    code = code_of(name)
    question = Question.parse(certify)
    dy, x = pair_of(dy, x)
    flat_dy, flat_x = _flat(dy), _flat(x)
    columns = _columns(flat_x.size)
    check_subnormals()
    _gradients(code, flat_dy, flat_x, *columns)
    enclosure = Enclosure(*columns)
    return _settle(
        enclosure, question, lambda i: exact.gradients(name, flat_dy[i], flat_x[i], question)
    ).reshape(x.shape)


def code_of(name: str) -> int:
    """The kernels' number of a function. Raises ValueError for any but sin, cos and tan."""
    if name not in CODES:
        raise ValueError(f"trig_ref knows sin, cos and tan, not {name!r}.")
    return CODES[name]


def pair_of(dy: Any, x: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """dy and x as arrays. Raises TypeError for other dtypes, ValueError where shapes differ."""
    dy, x = as_float_array(dy, "dy"), as_float_array(x, "x")
    if dy.shape != x.shape:
        raise ValueError(
            f"dy has shape {dy.shape} and x {x.shape}: an elementwise op's cotangent has the "
            "shape of its input."
        )
    return dy, x


def _forward(name: str, x: Any, certify: Certify) -> Enclosure:
    code = code_of(name)
    question = Question.parse(certify)
    x = as_float_array(x, "x")
    flat = _flat(x)
    columns = _columns(flat.size)
    check_subnormals()
    _values(code, flat, *columns)
    enclosure = Enclosure(*columns)
    return _settle(enclosure, question, lambda i: exact.values(name, flat[i], question)).reshape(
        x.shape
    )


def _settle(enclosure: Enclosure, question: Question, refine: Any) -> Enclosure:
    """Hands the elements that the question leaves open to the exact tier."""
    if question.kind == "enclosure":
        return enclosure
    rest = np.flatnonzero(question.undecided(enclosure))
    return enclosure.replace(rest, refine(rest)) if rest.size else enclosure


def _flat(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(to_float64(array)).reshape(-1)


def _columns(size: int) -> tuple[npt.NDArray[Any], ...]:
    """hi, lo, radius and scale, to be filled."""
    return (*(np.empty(size) for _ in range(3)), np.empty(size, np.int64))
