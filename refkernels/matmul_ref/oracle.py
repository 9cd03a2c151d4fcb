"""The certified contraction: scaling, the fast tier, special values, and the exact tier.

**Scaling.** The kernel wants magnitudes in [2^-420, 2^481). A row of `left` or a column of
`right` that lies inside is taken as it is (every float16, bfloat16 and float32 does). Any other
is multiplied by the power of two that brings its largest element into [2^479, 2^480), and the
answer is multiplied back: exact, but for elements more than 2^900 smaller than the largest of
their row or column. Such a row or column is `wild`: scaling may then round an element (error at
most 2^-1074, times at most 2^481) and a product may underflow (error at most 2^-1074); so the
dot product gains an error of at most terms * 2^-592 in scaled units, which is added to the
radius (as terms * 2^-590, to cover that sum's own rounding too).

**Special values.** In the extended reals a sum is NaN where a term is NaN (a NaN operand, or an
infinity times zero) or where both infinities appear, and otherwise the infinity that appears.
Finite products never count as infinite, whatever their size.

**Exact tier.** What the question leaves open goes to integer arithmetic, `exact.py`.
"""

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify, Question
from refkernels.matmul_ref import exact
from refkernels.matmul_ref.contraction import Array, Contraction
from refkernels.matmul_ref.kernel import dot_products

Floats = npt.NDArray[np.float64]

_LARGEST, _SMALLEST = 480, -420  # |x| < 2^480 and |x| >= 2^-420 (exponents as frexp counts them)
_NARROW_COLUMNS = 8  # the kernel's vectors run along the columns


def evaluate(contraction: Contraction, certify: Certify = "enclosure") -> Enclosure:
    """The certified answer of a contraction, in its shape."""
    question = Question.parse(certify)
    left, right = augmented(contraction)
    finite_left, finite_right = _finite(left), _finite(right)
    exact_products = contraction.left.dtype.itemsize < 8 and contraction.right.dtype.itemsize < 8
    at = contraction.left_index, contraction.right_index
    result = _fast(finite_left, finite_right, at, exact_products)
    open_elements = np.flatnonzero(question.undecided(result))
    if open_elements.size:
        refined = exact.dot_products(finite_left, finite_right, at, open_elements)
        result = result.replace(open_elements, refined)
    special, values = _special_values(left, right, at)
    if special.size:
        result = result.replace(special, Enclosure(values))
    return result.reshape(contraction.shape)


def augmented(contraction: Contraction) -> tuple[Floats, Floats]:
    """left and right in float64, exactly; an addend becomes a last row, times a column of ones."""
    left, right = to_float64(contraction.left), to_float64(contraction.right)
    if contraction.addend is not None:
        row = to_float64(contraction.addend)[None, None, :]
        left = np.concatenate([left, np.ones((*left.shape[:2], 1))], axis=2)
        right = np.concatenate([right, row], axis=1)
    return left, right


def _finite(operand: Floats) -> Floats:
    finite = np.isfinite(operand)
    return operand if finite.all() else np.where(finite, operand, 0.0)


def _fast(left: Floats, right: Floats, at: tuple[Array, Array], exact_products: bool) -> Enclosure:
    """The fast tier for finite operands, (batch, M, N)."""
    if right.shape[2] < _NARROW_COLUMNS and left.shape[1] > right.shape[2]:
        mirrored = _fast(
            np.swapaxes(right, 1, 2), np.swapaxes(left, 1, 2), at[::-1], exact_products
        )
        parts = (mirrored.hi, mirrored.lo, mirrored.radius, mirrored.scale)
        return Enclosure(*(np.ascontiguousarray(np.swapaxes(part, 1, 2)) for part in parts))
    row_shift, row_wild = _shifts(left, axis=2)
    column_shift, column_wild = _shifts(right, axis=1)
    shape = (len(at[0]), left.shape[1], right.shape[2])
    high, low, radius = np.empty(shape), np.empty(shape), np.empty(shape)
    dot_products(
        _shifted(left, row_shift), _shifted(right, column_shift), *at, exact_products,
        high, low, radius,
    )  # fmt: skip
    if row_wild.any() or column_wild.any():
        wild = row_wild[at[0]] | column_wild[at[1]]
        radius += np.where(wild, left.shape[2] * 2.0**-590, 0.0)
    if row_shift.any() or column_shift.any():
        return _unscaled(high, low, radius, -(row_shift[at[0]] + column_shift[at[1]]))
    return Enclosure(high, low, radius)


def _shifts(operand: Floats, axis: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Per row or column: the power of two to multiply with, and whether it is wild."""
    _, exponents = np.frexp(operand)
    nonzero = operand != 0.0
    largest = np.max(exponents, axis=axis, keepdims=True, where=nonzero, initial=-2000)
    smallest = np.min(exponents, axis=axis, keepdims=True, where=nonzero, initial=2000)
    outside = ((largest > _LARGEST) | (smallest <= _SMALLEST)) & (largest >= smallest)
    shift = np.where(outside, _LARGEST - largest, 0).astype(np.int64)
    return shift, outside & (smallest + shift <= _SMALLEST)


def _shifted(operand: Floats, shift: npt.NDArray[np.int64]) -> Floats:
    # Writable, too: a kernel is compiled anew for a read-only array.
    return np.require(np.ldexp(operand, shift) if shift.any() else operand, None, ["C", "W"])


def _unscaled(high: Floats, low: Floats, radius: Floats, power: npt.NDArray[np.int64]) -> Enclosure:
    """(high + low ± radius) * 2^power, in float64's own range where it fits exactly."""
    power = np.broadcast_to(power, high.shape)
    with np.errstate(over="ignore", under="ignore"):
        parts = [np.ldexp(part, power) for part in (high, low, radius)]
        back = [np.ldexp(part, -power) for part in parts]
    parts[2] = np.where(back[2] < radius, np.nextafter(parts[2], np.inf), parts[2])
    fits = (back[0] == high) & (back[1] == low) & np.isfinite(parts[0]) & np.isfinite(parts[2])
    fits &= (high == 0.0) | (np.abs(parts[0]) <= 2.0**1022)
    pairs = zip(parts, (high, low, radius), strict=True)
    hi, lo, wide = (np.where(fits, inside, scaled) for inside, scaled in pairs)
    return Enclosure(hi, lo, wide, np.where(fits, 0, power))


def _special_values(
    left: Floats, right: Floats, at: tuple[Array, Array]
) -> tuple[npt.NDArray[np.intp], Floats]:
    """Flat indices and values of the answers that are NaN or infinite."""
    touched = ~np.isfinite(left).all(axis=(0, 1)) | ~np.isfinite(right).all(axis=(0, 2))
    if not touched.any():
        return np.empty(0, np.intp), np.empty(0)
    a, b = left[:, :, touched][at[0]], right[:, touched][at[1]]
    positive = _both(a > 0, b > 0, a, b) + _both(a < 0, b < 0, a, b)
    negative = _both(a > 0, b < 0, a, b) + _both(a < 0, b > 0, a, b)
    undefined = (
        _count(np.isnan(a), np.ones_like(b, np.bool_))
        + _count(np.ones_like(a, np.bool_), np.isnan(b))
        + _count(np.isinf(a), b == 0)
        + _count(a == 0, np.isinf(b))
    )
    nan = (undefined > 0) | ((positive > 0) & (negative > 0))
    values = np.where(nan, np.nan, np.where(positive > 0, np.inf, -np.inf)).ravel()
    where = np.flatnonzero(nan | (positive > 0) | (negative > 0))
    return where, values[where]


def _both(
    a_sign: npt.NDArray[np.bool_], b_sign: npt.NDArray[np.bool_], a: Floats, b: Floats
) -> Floats:
    """How many terms have these signs and an infinite operand."""
    infinite_a, infinite_b = np.isinf(a) & a_sign, np.isinf(b) & b_sign
    return _count(infinite_a, b_sign) + _count(a_sign & ~infinite_a, infinite_b)


def _count(a: npt.NDArray[np.bool_], b: npt.NDArray[np.bool_]) -> Floats:
    counts: Floats = a.astype(np.float64) @ b.astype(np.float64)
    return counts
