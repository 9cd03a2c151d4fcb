"""Wrong softmaxes of scores that binary64 does not hold: what depends on the largest score is
computed from the score itself, and not from a float64 near it."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from refkernels import registry

RNG = np.random.default_rng(20261126)
SIZE = 1e17  # so that the rounding of a score is far above 1


@pytest.mark.parametrize("cause", ["clipped_exponent", "infinite_rows_zero"])
def test_a_formula_that_depends_on_the_largest_score_is_certified(cause: str) -> None:
    op = registry.get("attention")
    formulas = op.formulas
    assert formulas is not None
    faults = [*formulas.faults, *formulas.conventions]
    (formula,) = (fault.forward for fault in faults if fault.cause == cause)
    q, k, v = (SIZE * RNG.standard_normal((1, n, 3)) for n in (8, 5, 5))
    clipped = cause == "clipped_exponent"
    inputs = {"q": q, "k": k, "v": v}
    for certify in ("enclosure", ("ulp", "float64", 0.01)):
        y = formulas.certified("forward", formula, inputs, {}, certify)["y"]
        for i in range(8):
            scores = [
                sum(Fraction(a) * Fraction(b) for a, b in zip(q[0, i], key, strict=True))
                for key in k[0]
            ]
            top = scores.index(max(scores))
            with mpmath.workdps(60):
                weights = [1 if j == top else clipped * mpmath.exp(-64) for j in range(5)]
                for e in range(3):
                    terms = (w * mpmath.mpf(float(v[0, j, e])) for j, w in enumerate(weights))
                    exact = mpmath.fsum(terms) / mpmath.fsum(weights)
                    hi, lo, radius = (float(part[0, i, e]) for part in (y.hi, y.lo, y.radius))
                    assert abs(exact - mpmath.mpf(hi) - mpmath.mpf(lo)) < radius
