"""Functions of two numbers, with their gradients, certified: pow, atan2, hypot.

    pow(x, exponent)    atan2(a, b)    hypot(a, b)        -> y, Enclosures
    pow_backward(dy, x, exponent) -> (dx, dexponent), and so on

Elements are independent; all arrays have one shape. `formulas` holds the formulas, `OPS` the ops.
"""

from __future__ import annotations

from functools import partial

from refkernels.binary_ref import formulas
from refkernels.binary_ref.cases import cases_of_plane, cases_of_pow
from refkernels.ops import formula_op
from refkernels.ops.public import enclosure_of, enclosures_of, gradients_of, public_names

OPS = (
    formula_op(
        "pow",
        "x[...], exponent[...] -> y[...]",
        forms={"library": formulas.pow},
        backward={
            "library": formulas.pow_slopes,
            "rounded_exponent": partial(formulas.pow_slopes, rounded=True),
            "stored": partial(formulas.pow_slopes, rounded=True, stored=True),
        },
        faults=formulas.FAULTS["pow"],
        prepare=formulas.prepare_pow,
        cases=cases_of_pow,
    ),
    formula_op(
        "atan2",
        "a[...], b[...] -> y[...]",
        forms={"library": formulas.atan2, "composed": formulas.atan2_composed},
        backward={
            "quotient": formulas.atan2_slopes,
            "reciprocal": formulas.atan2_slopes_by_reciprocal,
            "stored": formulas.atan2_slopes_stored,
        },
        faults=formulas.FAULTS["atan2"],
        prepare=formulas.prepare_atan2,
        cases=partial(cases_of_plane, "atan2"),
    ),
    formula_op(
        "hypot",
        "a[...], b[...] -> y[...]",
        forms={"library": formulas.hypot},
        backward={"library": formulas.hypot_slopes, "stored": formulas.hypot_slopes_stored},
        faults=formulas.FAULTS["hypot"],
        prepare=formulas.prepare_hypot,
        cases=partial(cases_of_plane, "hypot"),
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)
_enclosures = enclosures_of(OPS)


@_enclosure
def pow() -> None:
    """y = x^exponent, elementwise; special values as those of C's pow.

    x, exponent  of one shape, float16, bfloat16, float32 or float64
    certify      the question (`refkernels.Enclosure`)

    Rational powers are recognised and exact, so that ties are ties. The bound is a
    library limit, 16 ulp (OpenCL's full profile). Raises TypeError for other dtypes, ValueError for
    shapes that differ. Source: ISO/IEC 9899:2018 (C17), F.10.4.4; IEEE 754-2019, section 9.2.1.

    Gradient: (dx, dexponent) = (dy e x^(e - 1), dy x^e log x). dx is 0 for e = 0 everywhere,
    dexponent 0 for x = 0 and e > 0, NaN for x < 0. The bound allows 16 ulp for powers, 4 for
    the logarithm, and an e - 1 that is rounded.
    """


@_enclosure
def atan2() -> None:
    """y = arg(b + i a): the angle of the point with abscissa b and ordinate a, in [-π, π]; special
    values as those of C's atan2(a, b). The bound is a library limit, 6 ulp (OpenCL's full profile),
    and that of the arctangent of a rounded quotient, moved to its quadrant. Source: ISO/IEC
    9899:2018 (C17), F.10.1.4. Otherwise as `pow`.

    Gradient: (da, db) = (dy b, -dy a) / (a² + b²), NaN at the origin. The bound is proven for
    kernels that do not scale: it is infinite where the squares may leave the format's range.
    """


@_enclosure
def hypot() -> None:
    """y = √(a² + b²); infinite where a or b is, as C's hypot. The bound is a library limit, 4 ulp
    (OpenCL's full profile). Source: ISO/IEC 9899:2018 (C17), F.10.4.3. Otherwise as `pow`.

    Gradient: (da, db) = dy (a, b) / hypot(a, b), NaN at the origin.
    """


__getattr__ = gradients_of(OPS, globals())
