"""The error bound of every stable kernel, element by element, and the condition numbers.

**Sums.** A conventional kernel adds the K products of an element in any order, with or without
FMA, in the accumulator's precision u (float32 for 16-bit formats). Then (Jeannerod and Rump 2013,
"Improved error bounds for inner products in floating-point arithmetic", doi:10.1137/120894488)

    |c - z| <= K u P,   P = sum_k |a_ik b_kj| (+ |bias_j|, and K + 1 terms, where there is a bias)

for any K. Matrix instructions, for factors of 16 bits, take 2.5 K u P at most, and a
little for the last few terms (`matrix_instructions.instructed`). Additions never underflow; each
product, or fused step, may, and is then off by at most half a subnormal, h = 2^(emin-p), and by
nothing relative: exact sums of slightly changed terms, K h, to which the additions add a relative
K u. The bias may come first, last or in between, by an addition or as the start of a fused step.

**16-bit storage.** The result is rounded to the output format: u_out (|z| + error) + h_out. A
kernel may also store parts of the answer: the product before the bias is added, or the gradient of
each broadcast batch element before they are summed (`partials`). The magnitudes of
these parts sum to at most P (1 + K u), and each may lose h_out: s = u_out P (1 + K u) +
partials h_out. The additions that follow and the last rounding see terms larger by as much:
s (1 + K u) (1 + u_out) in all. Formats that are their own accumulator store nothing in less
precision, so nothing is added for them.

**Overflow.** No partial sum exceeds (1 + K u) P + K h. Where that passes the accumulator's largest
number, or the rounded result (or a stored part) may pass the output format's, a stable kernel may
give inf or NaN, and the bound is inf. Where a NaN or infinity among the operands makes the answer
special, the bound is NaN: special values are compared by rule, not by bound.

**Rigour.** P is a float64 product of magnitudes: in any order of additions each term passes through
K roundings at most. As no term is negative, P is too small by a factor of at most
1 + K 2^-53 (1 + 2^-40) and, where products underflow, by K 2^-1075. Both are corrected, and a last
factor of 1 + 2^-44 covers the few dozen roundings of these formulas.

**Condition number** of a dot product: 2 P / |z|; inf at a zero, and 0 where every term is zero.
"""

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.arithmetic.matrix_instructions import instructed
from refkernels.arithmetic.question import Certify, Question
from refkernels.kernels.products import gemm
from refkernels.matmul_ref import algorithms, oracle
from refkernels.matmul_ref.contraction import Contraction

Floats = npt.NDArray[np.float64]

_UP = 1.0 + 2.0**-44
# Any nonzero answer to 2^-9 of itself, which also separates it from zero.
_THREE_DIGITS = Question("ulp", Format("three digits", 8, BINARY64.emin, BINARY64.emax, None), 0.25)


def rounding_bound(
    contraction: Contraction,
    format: Format | str,
    exact: Enclosure | None = None,
    total: Floats | None = None,
) -> Floats:
    """The bound above, in the answer's shape. `exact`, `total`: it and `magnitudes`, if known."""
    output = formats.get(format)
    accumulator = algorithms.accumulator(output)
    terms = contraction.terms
    narrow = all(factor.dtype.itemsize == 2 for factor in (contraction.left, contraction.right))
    by_instructions = accumulator is BINARY32 and (narrow or output is not BINARY32)
    relative = max(terms * accumulator.u, by_instructions * float(instructed(terms)))
    growth = 1.0 + relative
    total = magnitudes(contraction) if total is None else total
    magnitude = total + terms * 2.0**-1073
    with np.errstate(over="ignore", invalid="ignore"):
        underflow = terms * max(accumulator.min_subnormal / 2.0, 2.0**-1074) * growth
        bound = relative * magnitude + underflow
        reach = magnitude * growth + underflow
        bound = np.where(reach * _UP <= accumulator.max, bound, np.inf)
        if accumulator is not output:
            exact = _exact(contraction) if exact is None else exact
            bound = bound + _storage(contraction, exact, output, bound, reach, growth)
        bound = np.where(np.isnan(bound), np.inf, bound * _UP)
    if not _finite(contraction):
        exact = _exact(contraction) if exact is None else exact
        bound = np.where(np.isfinite(exact.hi), bound, np.nan)
    return np.asarray(bound)


def _exact(contraction: Contraction, certify: Certify = "enclosure") -> Enclosure:
    with tiers.counted():  # not counted: the caller gets the bound, not this answer
        return oracle.evaluate(contraction, certify)


def _finite(contraction: Contraction) -> bool:
    operands = contraction.left, contraction.right, contraction.addend
    return all(operand is None or bool(np.isfinite(operand).all()) for operand in operands)


def _storage(
    contraction: Contraction,
    exact: Enclosure,
    output: Format,
    bound: Floats,
    reach: Floats,
    growth: float,
) -> Floats:
    """The error that storing the answer and its parts in a 16-bit output format adds."""
    answer = np.abs(np.asarray(exact)) * _UP + np.ldexp(exact.radius, exact.scale) + bound
    added = output.u * answer + output.min_subnormal / 2.0
    largest = answer
    if contraction.partials > 1 or contraction.addend is not None:
        parts = output.u * reach + contraction.partials * output.min_subnormal / 2.0
        added = added + parts * growth * (1.0 + output.u)
        largest = reach * (1.0 + output.u)
    return np.where(largest * _UP <= output.max, added, np.inf)


def condition(
    contraction: Contraction, exact: Enclosure | None = None, total: Floats | None = None
) -> Floats:
    """2 sum|terms| / |answer|, in the shape of the contraction's answer. `exact` and `total`: as
    for `rounding_bound`; an answer that is not known to three digits is computed again."""
    if exact is None:
        answer = _exact(contraction, _THREE_DIGITS)
    else:
        answer = oracle.sharpened(contraction, exact, _THREE_DIGITS)
    magnitude = magnitudes(contraction) if total is None else total
    with np.errstate(all="ignore"):
        ratio = 2.0 * magnitude / np.abs(np.asarray(answer))
    vanishing = (np.abs(answer.hi) <= answer.radius) | ~np.isfinite(ratio)
    empty = answer.exact_zero & (magnitude == 0.0)
    return np.asarray(np.where(empty, 0.0, np.where(vanishing, np.inf, ratio)))


def magnitudes(contraction: Contraction) -> Floats:
    """P to a few K 2^-53, from above while no product underflows."""
    left, right = (np.abs(x) for x in oracle.augmented(contraction))
    at = contraction.left_index, contraction.right_index
    absolute = Contraction(left, right, *at, contraction.shape)
    if gemm.suits(contraction.batched_shape, contraction.terms):
        total = gemm.product(left, right, at).reshape(contraction.shape)
    else:
        total = algorithms.plain(absolute, BINARY64)
    with np.errstate(over="ignore"):
        return np.asarray(total * (1.0 + 2.0 * contraction.terms * BINARY64.u))
