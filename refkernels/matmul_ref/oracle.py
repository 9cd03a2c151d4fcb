"""The certified contraction: its tiers, scaling, and special values.

**Tiers.** Each answers the elements that the one before it left open:

    float64        one product by BLAS and a norm bound (`gemm`), where that can be enough: for
                   questions about narrower formats, and for "enclosure" with operands of 32 bits
                   and fewer
    slices         products cut at a fixed place, with an a-priori bound (`slices`), for all
                   elements; after float64 only where that leaves many open
    double_double  Dot2, with a running bound on its error (`dot2`), for those still open; and for
                   all where the problem is small or its magnitudes are extreme
    exact          integers (`exact`)

**Scaling.** The kernels need magnitudes in [2^-420, 2^481). A row of `left` or a column of
`right` that lies inside is not scaled (every float16, bfloat16 and float32 lies inside). Any other
is multiplied by the power of two that brings its largest element into [2^479, 2^480), and the
answer is multiplied back: exactly, except for elements more than 2^900 smaller than the largest of
their row or column. Such a row or column is `wild`: scaling may then round an element (error at
most 2^-1074, times at most 2^481) and a product may underflow (error at most 2^-1074); so the
dot product gains an error of at most terms * 2^-592 in scaled units, which is added to the
radius (as terms * 2^-590, to cover that sum's own rounding too).

**Special values.** In the extended reals a sum is NaN where a term is NaN (a NaN operand, or an
infinity times zero) or where both infinities appear, and otherwise the infinity that appears.
Finite products never count as infinite, whatever their size.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import tiers
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.blocks import each
from refkernels.arithmetic.enclosure import Enclosure, trusted
from refkernels.arithmetic.ladder import Draft, Step, climb
from refkernels.arithmetic.question import Certify, Question
from refkernels.kernels.products import dot2, exact, gemm, slices
from refkernels.kernels.products.lines import Lines, magnitude_bits
from refkernels.matmul_ref import special
from refkernels.matmul_ref.contraction import Array, Contraction

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_LARGEST, _SMALLEST = 480, -420  # |x| < 2^480 and |x| >= 2^-420 (exponents as frexp counts them)
_NARROW_COLUMNS = 8  # the kernel's vectors run along the columns
_LARGE = 2**18  # elements of both operands from which a second thread pays
_MANY = 4  # the open share from which computing all elements at once is cheaper


@dataclass(frozen=True)
class _ProductProblem:
    """Finite float64 operands (P, M, K) and (Q, K, N), with their properties."""

    left: Floats
    right: Floats
    at: tuple[Array, Array]
    exact_products: bool
    in_range: bool  # every number is zero or in [2^-420, 2^480)
    question: Question

    @property
    def float64_may_do(self) -> bool:
        """Whether intervals as wide as those of float64 sums may answer the question."""
        if self.question.kind == "enclosure":
            return self.exact_products
        return self.question.format.p < 53

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.at[0]), self.left.shape[1], self.right.shape[2]

    @property
    def size(self) -> int:
        batch, rows, columns = self.shape
        return batch * rows * columns


def evaluate(contraction: Contraction, certify: Certify = "enclosure") -> Enclosure:
    """The certified answer of a contraction, in its shape."""
    question = Question.parse(certify)
    left, right = augmented(contraction)
    problem = _problem(contraction, left, right, question)
    tier, answer, remaining = _first_tier(problem)
    steps = _steps(problem)[tier == "double_double" :]
    climb({"c": answer}, {"c": remaining}, tier, steps, question.undecided)
    if problem.left is not left or problem.right is not right:
        places, values = special.values(left, right, problem.at)
        answer.put(places, Enclosure(values))
    return answer.enclosure().reshape(contraction.shape)


def sharpened(contraction: Contraction, known: Enclosure, certify: Certify) -> Enclosure:
    """An answer of `evaluate`, made as sharp as another question asks: open elements go to the
    later tiers, the others stay unchanged."""
    question = Question.parse(certify)
    remaining = np.flatnonzero(question.undecided(known))
    if not remaining.size:
        return known
    problem = _problem(contraction, *augmented(contraction), question)
    answer = Draft.of(known.reshape(-1))
    steps = _steps(problem)[not problem.in_range :]
    with tiers.counted():  # not counted: `evaluate` has counted the answer
        climb({"c": answer}, {"c": remaining}, "float64", steps, question.undecided)
    return answer.enclosure().reshape(contraction.shape)


def _steps(problem: _ProductProblem) -> list[tuple[str, Step]]:
    """The tiers for some elements; Dot2 asks for operands in range."""
    operands = problem.left, problem.right, problem.at
    return [
        ("double_double", lambda left: {"c": _dot2_of(problem, left["c"])}),
        ("exact", lambda left: {"c": exact.dot_products(*operands, left["c"])}),
    ]


def _problem(
    contraction: Contraction, left: Floats, right: Floats, question: Question
) -> _ProductProblem:
    """The problem of operands that `augmented` gives, with special values replaced by zeros."""
    at = contraction.left_index, contraction.right_index
    operands = contraction.left, contraction.right, contraction.addend
    narrow = all(operand is None or operand.dtype.itemsize < 8 for operand in operands)
    (left, left_in_range), (right, right_in_range) = each(
        _finite, [(left, narrow), (right, narrow)], left.size + right.size > _LARGE
    )
    in_range = left_in_range and right_in_range
    return _ProductProblem(left, right, at, narrow, in_range, question)


def augmented(contraction: Contraction) -> tuple[Floats, Floats]:
    """left and right in float64, exactly; an addend becomes a last row, times a column of ones."""
    large = contraction.left.size + contraction.right.size > _LARGE
    left, right = each(to_float64, [(contraction.left,), (contraction.right,)], large)
    if contraction.addend is not None:
        row = to_float64(contraction.addend)[None, None, :]
        left = np.concatenate([left, np.ones((*left.shape[:2], 1))], axis=2)
        right = np.concatenate([right, row], axis=1)
    return left, right


def _first_tier(problem: _ProductProblem) -> tuple[str, Draft, Indices]:
    """The first tier's name, its answer for all elements, and the open elements."""
    if not problem.in_range or not gemm.suits(problem.shape, problem.left.shape[2]):
        answer = _dot2(problem)
        return "double_double", answer, _open(problem, answer)
    if problem.float64_may_do:
        operands = problem.left, problem.right, problem.at
        goal = problem.exact_products, problem.question
        hi, radius, remaining = gemm.enclosed(*operands, *goal)
        answer = Draft(hi.reshape(-1), 0.0, radius.reshape(-1))
        if remaining.size * _MANY <= problem.size:
            return "float64", answer, remaining
    left, right = Lines.of(problem.left), Lines.of(np.swapaxes(problem.right, 1, 2))
    answer = _flat(*slices.dot_products(left, right, problem.at))
    return "slices", answer, _open(problem, answer)


def _flat(*parts: Array) -> Draft:
    return Draft(*(part.reshape(-1) for part in parts))


def _open(problem: _ProductProblem, answer: Draft) -> Indices:
    """Flat indices of the elements whose interval is too wide for the question."""
    return np.flatnonzero(problem.question.undecided(answer.enclosure()))


def _dot2_of(problem: _ProductProblem, flat: Indices) -> Enclosure:
    """The chosen elements by Dot2; the operands are in range."""
    b, i, j = np.unravel_index(flat, problem.shape)
    left, right = Lines.of(problem.left), Lines.of(np.swapaxes(problem.right, 1, 2))
    chosen = problem.at[0][b], i, problem.at[1][b], j
    return trusted(*dot2.chosen_dot_products(left, right, chosen, problem.exact_products))


def _dot2(problem: _ProductProblem) -> Draft:
    """All elements by Dot2, scaled where that is needed."""
    left, right, at = problem.left, problem.right, problem.at
    mirrored = right.shape[2] < _NARROW_COLUMNS and left.shape[1] > right.shape[2]
    row_shift = column_shift = None
    if not problem.in_range:
        row_shift, row_wild = _shifts(left, axis=2)
        column_shift, column_wild = _shifts(right, axis=1)
        left, right = np.ldexp(left, row_shift), np.ldexp(right, column_shift)
    lines = Lines.of(left), Lines.of(np.swapaxes(right, 1, 2))
    if mirrored:
        turned = dot2.dot_products(lines[1], lines[0], at[::-1], problem.exact_products)
        parts = [np.ascontiguousarray(np.swapaxes(part, 1, 2)) for part in turned]
    else:
        parts = list(dot2.dot_products(*lines, at, problem.exact_products))
    if row_shift is None or column_shift is None:
        return _flat(*parts)
    wild = row_wild[at[0]] | column_wild[at[1]]
    parts[2] += np.where(wild, left.shape[2] * 2.0**-590, 0.0)
    high, low, radius = parts
    return _unscaled(high, low, radius, -(row_shift[at[0]] + column_shift[at[1]]))


def _shifts(operand: Floats, axis: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """For each row or column: the power of two to multiply with, and whether it is wild."""
    _, exponents = np.frexp(operand)
    nonzero = operand != 0.0
    largest = np.max(exponents, axis=axis, keepdims=True, where=nonzero, initial=-2000)
    smallest = np.min(exponents, axis=axis, keepdims=True, where=nonzero, initial=2000)
    outside = ((largest > _LARGEST) | (smallest <= _SMALLEST)) & (largest >= smallest)
    shift = np.where(outside, _LARGEST - largest, 0).astype(np.int64)
    return shift, outside & (smallest + shift <= _SMALLEST)


def _unscaled(high: Floats, low: Floats, radius: Floats, power: npt.NDArray[np.int64]) -> Draft:
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
    return _flat(hi, lo, wide, np.where(fits, 0, power))


def _finite(operand: Floats, narrow: bool) -> tuple[Floats, bool]:
    """The operand with zeros for NaN and infinities (itself where it has none), and whether every
    number is zero or in the kernels' range, as all numbers of 32 bits are."""
    flat = operand.ravel(order="K")
    if narrow:
        with np.errstate(invalid="ignore"):
            total = flat.sum()  # finite where all numbers are: float64 holds the sum of narrow ones
        if np.isfinite(total):
            return operand, True
    largest, below_smallest = _magnitudes(operand)
    if largest >= _bits(np.inf):
        operand = np.where(np.isfinite(operand), operand, 0.0)
        largest, below_smallest = _magnitudes(operand)
    return operand, largest < _bits(2.0**_LARGEST) and below_smallest >= _bits(2.0**_SMALLEST) - 1


def _magnitudes(operand: Floats) -> tuple[int, int]:
    largest, below_smallest = magnitude_bits(operand.ravel(order="K").view(np.uint64))
    return int(largest), int(below_smallest)


def _bits(value: float) -> int:
    return int(np.float64(value).view(np.uint64))
