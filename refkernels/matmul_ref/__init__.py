"""Certified matrix products, affine layers and sums of products, with their gradients.

    matmul: c = a @ b                      da = dc @ bᵀ     db = aᵀ @ dc
    linear: y = x @ weightᵀ + bias         dx = dy @ weight dweight = dyᵀ @ x   dbias = sum dy
    einsum: y of an equation, such as "ij,jk->ik"; its formulas are in `einsum`

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

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify
from refkernels.matmul_ref import algorithms, bounds, cases, contraction, formulas, oracle
from refkernels.matmul_ref.einsum import EINSUM
from refkernels.matmul_ref.solution import each, solver
from refkernels.op import Op, Sum
from refkernels.ops.public import enclosure_of, gradients_of, public_names

_PASSES = ("forward", "backward", "linear", "linear_backward")
__all__ = [
    "OPS",
    "Backward",
    "LinearBackward",
    *public_names([EINSUM]),
    *(f"{name}{reading}" for name in _PASSES for reading in ("", "_bound", "_condition", "_plain")),
]


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
    return each(oracle.evaluate, _matmul(a, b), certify=certify)


@with_default_fenv
def backward(dc: Any, a: Any, b: Any, *, certify: Certify = "enclosure") -> Backward:
    """da = dc @ bᵀ and db = aᵀ @ dc, certified, in the shapes of a and b; dc has that of a @ b.
    Otherwise as `forward`.
    """
    return each(oracle.evaluate, _matmul_backward(dc, a, b), certify=certify)


@with_default_fenv
def linear(x: Any, weight: Any, bias: Any = None, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x @ weightᵀ + bias, certified; x (..., in_features), weight (out_features, in_features),
    bias (out_features,), y (..., out_features). The bound is `linear_bound`. Otherwise as
    `forward`. Source: PyTorch documentation, `torch.nn.Linear`.
    """
    return each(oracle.evaluate, _linear(x, weight, bias), certify=certify)


@with_default_fenv
def linear_backward(
    dy: Any, x: Any, weight: Any, bias: Any = None, *, certify: Certify = "enclosure"
) -> LinearBackward:
    """dx = dy @ weight, dweight = dyᵀ @ x, dbias = sum of dy over its leading axes, certified.
    Otherwise as `linear`.
    """
    return each(oracle.evaluate, _linear_backward(dy, x, weight, bias), certify=certify)


def _floats(**arrays: Any) -> dict[str, Any]:
    """The arrays by name; the bias may be None."""
    return {
        name: array if name == "bias" and array is None else as_float_array(array, name)
        for name, array in arrays.items()
    }


def _matmul(a: Any, b: Any) -> contraction.Contraction:
    return contraction.of_matmul(**_floats(a=a, b=b))


def _matmul_backward(dc: Any, a: Any, b: Any) -> Any:
    products: Any = contraction.of_matmul_backward(**_floats(dc=dc, a=a, b=b))
    return Backward(*products)


def _linear(x: Any, weight: Any, bias: Any = None) -> contraction.Contraction:
    return contraction.of_linear(**_floats(x=x, weight=weight, bias=bias))


def _linear_backward(dy: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    arrays = _floats(dy=dy, x=x, weight=weight, bias=bias)
    products: Any = contraction.of_linear_backward(**arrays)
    return LinearBackward(*products)


def _of_all_passes(reading: Callable[..., Any], documentation: str) -> Iterator[Any]:
    """The functions of arrays that read matmul's products, those of its gradients, and linear's."""

    def function(products: Callable[..., Any], *arrays: Any, **named: Any) -> Any:
        options = {"format": named.pop("format")} if "format" in named else {}
        return each(reading, products(*arrays, **named), **options)

    for products in (_matmul, _matmul_backward, _linear, _linear_backward):
        read = partial(with_default_fenv(function), products)
        read.__doc__ = documentation
        yield read


forward_bound, backward_bound, linear_bound, linear_backward_bound = _of_all_passes(
    bounds.rounding_bound,
    """|fl(c) - c| <= K u |a| @ |b| for conventional products, in any order, and more for underflow,
    16 bits and overflow (see `bounds`): float64, of c's shape; a bias counts as one term more,
    first or last. `format` is that of the kernel.

    Raises ValueError for an unknown format; otherwise as `forward`. Source: Jeannerod and Rump
    (2013), doi:10.1137/120894488.
    """,
)
forward_condition, backward_condition, linear_condition, linear_backward_condition = _of_all_passes(
    bounds.condition,
    """2 |a| @ |b| / |a @ b|, of c's shape; inf where the product cancels to zero. Otherwise as
    `forward`. Source: Ogita, Rump and Oishi (2005), doi:10.1137/030601818.
    """,
)
forward_plain, backward_plain, linear_plain, linear_backward_plain = _of_all_passes(
    algorithms.plain,
    """a @ b by the sequential algorithm in the format (16-bit: float32 sums, rounded once), a bias
    added last. Otherwise as `forward_bound`.
    """,
)


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
        solvers={"forward": solver(_matmul), "backward": solver(_matmul_backward)},
        cases=cases.matmul,
        row_inputs=("a",),
        row_gradients=("da",),
        sums={
            "c": Sum("ij", {"a": "ik", "b": "kj"}),
            "da": Sum("ik", {"dc": "ij", "b": "kj"}),
            "db": Sum("kj", {"a": "ik", "dc": "ij"}),
        },
        define=lambda: formulas.MATMUL,
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
        solvers={"forward": solver(_linear), "backward": solver(_linear_backward)},
        cases=cases.linear,
        row_inputs=("x",),
        row_gradients=("dx",),
        sums={
            "y": Sum("io", {"x": "ik", "weight": "ok", "bias": "o"}, rows="i"),
            "dx": Sum("ik", {"dy": "io", "weight": "ok"}, rows="i"),
            "dweight": Sum("ok", {"dy": "io", "x": "ik"}, rows="i"),
            "dbias": Sum("o", {"dy": "io"}, rows="i"),
        },
        define=lambda: formulas.LINEAR,
    ),
    EINSUM,
)


@enclosure_of(OPS)
def einsum() -> None:
    """y = the sum of the products of two or three operands by an equation: "ij,jk->ik" is
    y_ik = sum over j of a_ij b_jk.

    a, b, c     float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`), of the shapes
                that the equation names; c only where it names three operands
    equation    a letter for each axis, and ... for any leading axes; no letter twice in one term
    certify     the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is about (n + 2) 2^-24 times the sum of |products| of n terms,
    for products of any two operands first and for all at once, which may be up to 4,194,304
    products. Raises TypeError for other dtypes, ValueError for shapes and equations that do not
    fit. Source: NumPy documentation, `numpy.einsum`.

    Gradient: (da, db, dc): da = the einsum of dy, b and c, by a's letters. dy has y's shape.
    """


__getattr__ = gradients_of([EINSUM], globals())
