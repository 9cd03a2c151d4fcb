"""Certified matrix products and affine layers, with their gradients.

    matmul: c = a @ b                      da = dc @ bᵀ     db = aᵀ @ dc
    linear: y = x @ weightᵀ + bias         dx = dy @ weight dweight = dyᵀ @ x   dbias = sum dy

Shapes follow NumPy: leading axes broadcast (their gradients are summed over them, as autograd
does), one-dimensional operands gain an axis and lose it again; x is (..., in_features), weight
(out_features, in_features), bias (out_features,). Inputs: float16, bfloat16, float32 or float64,
also mixed: each number is taken as the exact rational it is. Empty sums are exact zeros.
NaN and infinities follow the extended reals: NaN where a term is NaN (inf * 0 is) or infinities
of both signs meet, otherwise the infinity; finite products never overflow.

Every answer is an `Enclosure`: exact value in (hi + lo ± radius) * 2^scale, by the tiers of
`oracle`, or as sharp as `certify=("rounding", format)` or `("ulp", format, uncertainty)` asks. No
bit depends on the number of threads. `kernels.products` has the proofs, `bounds` the error bound of
stable kernels, `algorithms` the working-precision kernels.

NumPy's BLAS is assumed to compute each element as the sum of its own products, in double precision,
in any order, with or without FMA (not Strassen's algorithm: `blas.conventional` tests it).

Raises TypeError for other dtypes and ValueError for shapes that do not fit, with the rule.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify
from refkernels.matmul_ref import algorithms, bounds, cases, contraction, oracle
from refkernels.matmul_ref.solution import solver
from refkernels.op import Op, Sum

if TYPE_CHECKING:
    from refkernels.ops.formulas import Formulas

__all__ = [
    "OPS",
    "Backward",
    "LinearBackward",
    "backward",
    "backward_bound",
    "backward_condition",
    "backward_plain",
    "forward",
    "forward_bound",
    "forward_condition",
    "forward_plain",
    "linear",
    "linear_backward",
    "linear_backward_bound",
    "linear_backward_condition",
    "linear_backward_plain",
    "linear_bound",
    "linear_condition",
    "linear_plain",
]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class Backward(NamedTuple):
    """da and db have the shapes of a and b."""

    da: Enclosure
    db: Enclosure


class LinearBackward(NamedTuple):
    """dx has x's shape, dweight weight's, dbias (out_features,). dbias does not depend on the bias,
    and is computed even if none is given."""

    dx: Enclosure
    dweight: Enclosure
    dbias: Enclosure


class MatmulBackwardArrays(NamedTuple):
    """Bounds, condition numbers or a plain algorithm's answers, in the form of Backward."""

    da: npt.NDArray[Any]
    db: npt.NDArray[Any]


class LinearBackwardArrays(NamedTuple):
    """Bounds, condition numbers or a plain algorithm's answers, in the form of LinearBackward."""

    dx: npt.NDArray[Any]
    dweight: npt.NDArray[Any]
    dbias: npt.NDArray[Any]


@with_default_fenv
def forward(a: Any, b: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """c = a @ b, certified: c_ij = sum over k of a_ik b_kj.

    a, b        (..., M, K) and (..., K, N), float16, bfloat16, float32 or float64, also mixed;
                leading axes broadcast, and one-dimensional operands gain an axis and lose it
    certify     the question (`refkernels.Enclosure`)

    The radius is about 2^-92 of the rows' and columns' norms for float64 and 2^-44 for narrower
    operands, and as small as the question asks; the bound of kernels is `forward_bound`.
    Raises TypeError for other dtypes, ValueError for shapes that do not fit.
    Source: Jeannerod and Rump (2013), doi:10.1137/120894488 (the bound).
    """
    return oracle.evaluate(_matmul(a, b), certify)


@with_default_fenv
def forward_bound(a: Any, b: Any, *, format: Format | str) -> Floats:
    """|fl(c) - c| <= K u |a| @ |b| for conventional products, in any order, and more for underflow,
    16 bits and overflow (see `bounds`): float64, of c's shape.

    Raises ValueError for an unknown format; otherwise as `forward`. Source: Jeannerod and Rump
    (2013), doi:10.1137/120894488.
    """
    return bounds.rounding_bound(_matmul(a, b), format)


@with_default_fenv
def forward_condition(a: Any, b: Any) -> Floats:
    """2 |a| @ |b| / |a @ b|, of c's shape; inf where the product cancels to zero. Otherwise as
    `forward`. Source: Ogita, Rump and Oishi (2005), doi:10.1137/030601818.
    """
    return bounds.condition(_matmul(a, b))


@with_default_fenv
def forward_plain(a: Any, b: Any, *, format: Format | str) -> Array:
    """a @ b by the sequential algorithm in the format (16-bit: float32 sums, rounded once).
    Otherwise as `forward_bound`.
    """
    return algorithms.plain(_matmul(a, b), format)


@with_default_fenv
def backward(dc: Any, a: Any, b: Any, *, certify: Certify = "enclosure") -> Backward:
    """da = dc @ bᵀ and db = aᵀ @ dc, certified, in the shapes of a and b; dc has that of a @ b.
    Otherwise as `forward`.
    """
    return Backward(*(oracle.evaluate(part, certify) for part in _matmul_backward(dc, a, b)))


@with_default_fenv
def backward_bound(dc: Any, a: Any, b: Any, *, format: Format | str) -> MatmulBackwardArrays:
    """`forward_bound` for both gradients. Otherwise as `forward_bound`."""
    parts = _matmul_backward(dc, a, b)
    return MatmulBackwardArrays(*(bounds.rounding_bound(part, format) for part in parts))


@with_default_fenv
def backward_condition(dc: Any, a: Any, b: Any) -> MatmulBackwardArrays:
    """`forward_condition` for both gradients. Otherwise as `forward_condition`."""
    return MatmulBackwardArrays(*(bounds.condition(part) for part in _matmul_backward(dc, a, b)))


@with_default_fenv
def backward_plain(dc: Any, a: Any, b: Any, *, format: Format | str) -> MatmulBackwardArrays:
    """`forward_plain` for both gradients. Otherwise as `forward_plain`."""
    parts = _matmul_backward(dc, a, b)
    return MatmulBackwardArrays(*(algorithms.plain(part, format) for part in parts))


@with_default_fenv
def linear(x: Any, weight: Any, bias: Any = None, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x @ weightᵀ + bias, certified; x (..., in_features), weight (out_features, in_features),
    bias (out_features,), y (..., out_features). The bound is `linear_bound`. Otherwise as
    `forward`. Source: PyTorch documentation, `torch.nn.Linear`.
    """
    return oracle.evaluate(_linear(x, weight, bias), certify)


@with_default_fenv
def linear_bound(x: Any, weight: Any, bias: Any = None, *, format: Format | str) -> Floats:
    """|fl(y) - y| <= (K + 1) u (|x| @ |weight|ᵀ + |bias|) and more, see `bounds`: the bias first or
    last. Otherwise as `forward_bound`.
    """
    return bounds.rounding_bound(_linear(x, weight, bias), format)


@with_default_fenv
def linear_condition(x: Any, weight: Any, bias: Any = None) -> Floats:
    """2 (|x| @ |weight|ᵀ + |bias|) / |y|; inf where y cancels to zero. Otherwise as
    `forward_condition`.
    """
    return bounds.condition(_linear(x, weight, bias))


@with_default_fenv
def linear_plain(x: Any, weight: Any, bias: Any = None, *, format: Format | str) -> Array:
    """The sequential algorithm in the format, the bias added last. Otherwise as `forward_plain`."""
    return algorithms.plain(_linear(x, weight, bias), format)


@with_default_fenv
def linear_backward(
    dy: Any, x: Any, weight: Any, bias: Any = None, *, certify: Certify = "enclosure"
) -> LinearBackward:
    """dx = dy @ weight, dweight = dyᵀ @ x, dbias = sum of dy over its leading axes, certified.
    Otherwise as `linear`.
    """
    parts = _linear_backward(dy, x, weight, bias)
    return LinearBackward(*(oracle.evaluate(part, certify) for part in parts))


@with_default_fenv
def linear_backward_bound(
    dy: Any, x: Any, weight: Any, bias: Any = None, *, format: Format | str
) -> LinearBackwardArrays:
    """`forward_bound` for the three gradients. Otherwise as `forward_bound`."""
    parts = _linear_backward(dy, x, weight, bias)
    return LinearBackwardArrays(*(bounds.rounding_bound(part, format) for part in parts))


@with_default_fenv
def linear_backward_condition(
    dy: Any, x: Any, weight: Any, bias: Any = None
) -> LinearBackwardArrays:
    """`forward_condition` for the three gradients. Otherwise as `forward_condition`."""
    return LinearBackwardArrays(
        *(bounds.condition(part) for part in _linear_backward(dy, x, weight, bias))
    )


@with_default_fenv
def linear_backward_plain(
    dy: Any, x: Any, weight: Any, bias: Any = None, *, format: Format | str
) -> LinearBackwardArrays:
    """`forward_plain` for the three gradients. Otherwise as `forward_plain`."""
    parts = _linear_backward(dy, x, weight, bias)
    return LinearBackwardArrays(*(algorithms.plain(part, format) for part in parts))


def _matmul(a: Any, b: Any) -> contraction.Contraction:
    return contraction.of_matmul(as_float_array(a, "a"), as_float_array(b, "b"))


def _matmul_backward(dc: Any, a: Any, b: Any) -> tuple[contraction.Contraction, ...]:
    return contraction.of_matmul_backward(
        as_float_array(dc, "dc"), as_float_array(a, "a"), as_float_array(b, "b")
    )


def _linear(x: Any, weight: Any, bias: Any = None) -> contraction.Contraction:
    return contraction.of_linear(
        as_float_array(x, "x"), as_float_array(weight, "weight"), _optional(bias)
    )


def _linear_backward(
    dy: Any, x: Any, weight: Any, bias: Any = None
) -> tuple[contraction.Contraction, ...]:
    return contraction.of_linear_backward(
        as_float_array(dy, "dy"),
        as_float_array(x, "x"),
        as_float_array(weight, "weight"),
        _optional(bias),
    )


def _optional(bias: Any) -> Array | None:
    return None if bias is None else as_float_array(bias, "bias")


def _definition(name: str) -> "Formulas":
    from refkernels.matmul_ref import formulas

    definition: Formulas = getattr(formulas, name)
    return definition


OPS = (
    Op(
        name="matmul",
        inputs=("a", "b"),
        outputs=("c",),
        cotangent="dc",
        gradients=("da", "db"),
        forward=forward,
        backward=backward,
        forward_bound=forward_bound,
        backward_bound=backward_bound,
        forward_condition=forward_condition,
        backward_condition=backward_condition,
        forward_plain=forward_plain,
        backward_plain=backward_plain,
        solvers={
            "forward": solver(_matmul),
            "backward": solver(_matmul_backward, Backward, MatmulBackwardArrays),
        },
        cases=cases.matmul,
        row_inputs=("a",),
        row_gradients=("da",),
        sums={
            "c": Sum("ij", {"a": "ik", "b": "kj"}),
            "da": Sum("ik", {"dc": "ij", "b": "kj"}),
            "db": Sum("kj", {"a": "ik", "dc": "ij"}),
        },
        define=lambda: _definition("MATMUL"),
    ),
    Op(
        name="linear",
        inputs=("x", "weight", "bias"),
        optional=("bias",),
        outputs=("y",),
        cotangent="dy",
        gradients=("dx", "dweight", "dbias"),
        forward=linear,
        backward=linear_backward,
        forward_bound=linear_bound,
        backward_bound=linear_backward_bound,
        forward_condition=linear_condition,
        backward_condition=linear_backward_condition,
        forward_plain=linear_plain,
        backward_plain=linear_backward_plain,
        solvers={
            "forward": solver(_linear),
            "backward": solver(_linear_backward, LinearBackward, LinearBackwardArrays),
        },
        cases=cases.linear,
        row_inputs=("x",),
        row_gradients=("dx",),
        sums={
            "y": Sum("io", {"x": "ik", "weight": "ok", "bias": "o"}, rows="i"),
            "dx": Sum("ik", {"dy": "io", "weight": "ok"}, rows="i"),
            "dweight": Sum("ok", {"dy": "io", "x": "ik"}, rows="i"),
            "dbias": Sum("o", {"dy": "io"}, rows="i"),
        },
        define=lambda: _definition("LINEAR"),
    ),
)
