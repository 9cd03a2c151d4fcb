"""The exact tier: LayerNorm in Python integers, where double-double cannot hold or decide.

A row is x_i = m_i 2^e, and eps = k 2^f. With S = sum m, D_i = n m_i - S, Q = n sum m^2 - S^2:
    d_i = D_i 2^e / n,   variance = Q 2^(2e) / n^2,
    V = variance + eps = N 2^g / n^2,   N = Q 2^(2e-g) + k n^2 2^(f-g),   g even, g <= 2e, g <= f
so that, with t_i = T_i 2^h, A = sum T, B = sum T D:
    mean     = S 2^e / n
    rstd     = n 2^(-g/2) / sqrt(N)
    y_i      = D_i w 2^(e-g/2) / sqrt(N) + b
    dx_i     = Z_i 2^(h-g/2) / (N sqrt(N)),   Z_i = N (n T_i - A) - D_i B 2^(2e-g)
    dweight  = sum over rows of dy D 2^(e-g/2) / sqrt(N).
Everything but 1/sqrt(N) is an integer times a power of two; floor(2^k / sqrt(N)) comes from one
integer square root, with as many bits as the question needs.

Ties and zeros are decided, not approximated. If N is a perfect square everything is rational, and
a rational that is a floating-point number or a midpoint gets radius 0. Otherwise
1/sqrt(N) is irrational: dx is 0 only where Z = 0, y is rational only where D w = 0, so more bits
always decide. For dweight, rows whose product N N' is a perfect square share a square root; square
roots of different square-free classes are linearly independent over the rationals (Besicovitch
1940, doi:10.1112/jlms/s1-15.1.3), so the sum is 0 only where the coefficient of each class is 0,
and rational only where those of all classes but that of 1 are.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import from_integer_balls, to_integers
from refkernels.arithmetic.ladder import Indices, refine
from refkernels.arithmetic.question import Question

Values = npt.NDArray[np.float64]
Ball = tuple[int, int, int]  # (mid ± radius) * 2^exponent
_PRECISIONS = (256, 1024, 4096, 16384)
# Quadratic characters modulo these primes separate most square classes.
_PRIMES = (2**57 - 13, 2**58 - 27, 2**59 - 55, 2**60 - 93, 2**61 - 1, 2**62 - 57, 2**63 - 25)


class ExactRow:
    """The exact statistics of one finite row, each computed on first use: a mean needs none of the
    others."""

    def __init__(self, x: Values, eps: float) -> None:
        self.values, self.e = to_integers(x)
        self.n, self.eps = len(self.values), eps
        self.total = sum(self.values)
        self._inverses: dict[tuple[int, int], tuple[int, int]] = {}

    @functools.cached_property
    def deviations(self) -> list[int]:
        """D, in units of 2^e."""
        return [self.n * value - self.total for value in self.values]

    @functools.cached_property
    def _radicand(self) -> tuple[int, int]:
        """N and g."""
        n, e = self.n, self.e
        (k,), f = to_integers(np.array([self.eps]))
        q = n * sum(value * value for value in self.values) - self.total**2
        g = 2 * e if k == 0 else min(2 * e, f - (f & 1))
        return (q << (2 * e - g)) + ((k * n * n << (f - g)) if k else 0), g

    @property
    def radicand(self) -> int:
        """N."""
        return self._radicand[0]

    @property
    def g(self) -> int:
        """N's exponent."""
        return self._radicand[1]

    @property
    def half(self) -> int:
        return self.g // 2

    @functools.cached_property
    def root(self) -> int | None:
        """sqrt(N) where N is a perfect square, else None."""
        root = math.isqrt(self.radicand)
        return root if root * root == self.radicand else None

    def inverse(self, power: int, bits: int) -> tuple[int, int]:
        """(I, k) with I <= 2^k / N^(power/2) < I + 1, and I of at least `bits` bits."""
        if (power, bits) not in self._inverses:
            radicand = self.radicand**power
            k = bits + radicand.bit_length() // 2 + 1
            self._inverses[power, bits] = math.isqrt((1 << (2 * k)) // radicand), k
        return self._inverses[power, bits]

    def over_root(self, numerator: int, exponent: int, power: int, bits: int) -> Ball:
        """numerator * 2^exponent / sqrt(N)^power, power odd."""
        if self.root is not None:
            return quotient(numerator, self.root**power, exponent, bits)
        inverse, k = self.inverse(power, bits)
        return numerator * inverse, abs(numerator), exponent - k


def quotient(numerator: int, denominator: int, exponent: int, bits: int) -> Ball:
    """numerator * 2^exponent / denominator; exact where that is a dyadic rational."""
    shift = bits + denominator.bit_length()
    floor, remainder = divmod(numerator << shift, denominator)
    return floor, 1 if remainder else 0, exponent - shift


def add_balls(balls: Sequence[Ball]) -> Ball:
    """The sum of the balls."""
    nonzero = [ball for ball in balls if ball[0] or ball[1]]
    if not nonzero:
        return 0, 0, 0
    lowest = min(exponent for _, _, exponent in nonzero)
    mid = sum(m << (exponent - lowest) for m, _, exponent in nonzero)
    radius = sum(r << (exponent - lowest) for _, r, exponent in nonzero)
    return mid, radius, lowest


def enclose(balls: Sequence[Ball]) -> Enclosure:
    """A flat Enclosure of the balls."""
    mids, radii, exponents = zip(*balls, strict=True) if balls else ((), (), ())
    return from_integer_balls(mids, radii, exponents, (len(balls),))


def _refined(balls: Callable[[int], list[Ball]], question: Question) -> Enclosure:
    """The balls in more and more bits until the question is answered in every element."""
    return _in_more_bits(enclose(balls(_PRECISIONS[0])), balls, question)


def _in_more_bits(
    enclosure: Enclosure, balls: Callable[[int], list[Ball]], question: Question
) -> Enclosure:
    def sharper(left: Indices, bits: int, previous: Enclosure) -> Enclosure:
        sharper_balls = balls(bits)
        return enclose([sharper_balls[at] for at in left])

    left = np.flatnonzero(question.undecided(enclosure))
    return refine(enclosure, left, _PRECISIONS[1:], sharper, question.undecided)


def _integer(value: float) -> tuple[int, int]:
    mantissa, exponent = math.frexp(value)
    return int(math.ldexp(mantissa, 53)), exponent - 53


def mean(row: ExactRow) -> Enclosure:
    """The row's mean: rational."""
    return enclose([quotient(row.total, row.n, row.e, 256)])


def rstd(row: ExactRow, question: Question) -> Enclosure:
    """1 / sqrt(variance + eps); infinity where that is 1 / 0."""
    if row.radicand == 0:
        return Enclosure(np.array([math.inf]))
    return _refined(lambda bits: [row.over_root(row.n, -row.half, 1, bits)], question)


def y(
    row: ExactRow, columns: Sequence[int], weight: Values, bias: Values, question: Question
) -> Enclosure:
    """y in the given columns. NaN where rstd is infinite; extended reals for infinite weights."""
    if row.radicand == 0:
        return Enclosure(np.full(len(columns), math.nan))

    def balls(bits: int) -> list[Ball]:
        row_balls = []
        for j in columns:
            if not (math.isfinite(weight[j]) and math.isfinite(bias[j])):
                row_balls.append((0, 0, 0))
                continue
            w, wx = _integer(weight[j])
            b, bx = _integer(bias[j])
            product = row.over_root(row.deviations[j] * w, row.e - row.half + wx, 1, bits)
            row_balls.append(add_balls([product, (b, 0, bx)]))
        return row_balls

    result = _refined(balls, question)
    for at, j in enumerate(columns):
        if not (math.isfinite(weight[j]) and math.isfinite(bias[j])):
            sign = (row.deviations[j] > 0) - (row.deviations[j] < 0)
            with np.errstate(invalid="ignore"):
                special = np.float64(sign) * weight[j] + bias[j]
            result = result.replace(np.array([at]), Enclosure(np.array([special])))
    return result


def input_gradient(
    row: ExactRow, columns: Sequence[int], dy: Values, weight: Values, question: Question
) -> Enclosure:
    """dx in the given columns. NaN where rstd, a dy or a weight is not finite."""
    if row.radicand == 0 or not (np.isfinite(dy).all() and np.isfinite(weight).all()):
        return Enclosure(np.full(len(columns), math.nan))
    dys, dx = to_integers(dy)
    weights, wx = to_integers(weight)
    t = [a * b for a, b in zip(dys, weights, strict=True)]
    a = sum(t)
    b = sum(p * q for p, q in zip(t, row.deviations, strict=True)) << (2 * row.e - row.g)
    numerators = [row.radicand * (row.n * t[j] - a) - row.deviations[j] * b for j in columns]
    exponent = dx + wx - row.half
    return _refined(
        lambda bits: [row.over_root(z, exponent, 3, bits) for z in numerators], question
    )


def _square_classes(rows: Sequence[ExactRow | None]) -> list[tuple[list[int], list[int]]]:
    """Groups of rows with a common square root: (their indices, q_i with N_0 N_i = q_i^2).

    Only rows with the same quadratic characters are compared. If a character splits a class (a
    prime that divides N), sums over it stay undecided, which is never wrong.
    """
    groups: dict[tuple[int, ...], list[tuple[list[int], list[int]]]] = {}
    for i, row in enumerate(rows):
        if row is None:
            continue
        key = tuple(pow(row.radicand, (prime - 1) // 2, prime) for prime in _PRIMES)
        candidates = groups.setdefault(key, [])
        for members, roots in candidates:
            first = rows[members[0]]
            assert first is not None
            product = first.radicand * row.radicand
            root = math.isqrt(product)
            if root * root == product:
                members.append(i)
                roots.append(root)
                break
        else:
            candidates.append(([i], [row.radicand]))
    return [group for groups_of_key in groups.values() for group in groups_of_key]


def weight_gradient(
    rows: Sequence[ExactRow | None], columns: Sequence[int], dy: Values, question: Question
) -> Enclosure:
    """dweight in the given columns of x; dy holds these columns alone, all finite. None stands for
    a row that adds nothing (constant, or its dy is 0 there)."""
    terms = [_column_terms(rows, j, values) for j, values in zip(columns, dy.T, strict=True)]

    def balls(bits: int) -> list[Ball]:
        column_balls = []
        for column in terms:
            parts = []
            for i, c, exponent in column:
                row = rows[i]
                assert row is not None
                parts.append(row.over_root(c, exponent, 1, bits))
            column_balls.append(add_balls(parts))
        return column_balls

    result = enclose(balls(_PRECISIONS[0]))
    pending = np.flatnonzero(question.undecided(result))
    if not pending.size:
        return result
    classes = _square_classes(rows)
    for at in pending:
        rational = _rational_sum(rows, terms[at], classes)
        if rational is not None:
            ball = quotient(rational.numerator, rational.denominator, 0, 4096)
            result = result.replace(np.array([at]), enclose([ball]))
    return _in_more_bits(result, balls, question)


def _column_terms(
    rows: Sequence[ExactRow | None], j: int, dy: Values
) -> list[tuple[int, int, int]]:
    """(row, c, exponent): the term c 2^exponent / sqrt(N_row) of each row that adds something."""
    terms = []
    for i, row in enumerate(rows):
        if row is not None and dy[i] != 0.0 and row.deviations[j] != 0:
            m, exponent = _integer(dy[i])
            terms.append((i, m * row.deviations[j], exponent + row.e - row.half))
    return terms


def _rational_sum(
    rows: Sequence[ExactRow | None],
    terms: Sequence[tuple[int, int, int]],
    classes: Sequence[tuple[list[int], list[int]]],
) -> Fraction | None:
    """The sum of the terms where it is rational, else None."""
    coefficients = {i: Fraction(c) * Fraction(2) ** exponent for i, c, exponent in terms}
    total = Fraction(0)
    for members, roots in classes:
        # 1 / sqrt(N_i) = sqrt(N_0) / q_i
        coefficient = sum(
            (coefficients[i] / q for i, q in zip(members, roots, strict=True) if i in coefficients),
            Fraction(0),
        )
        if coefficient == 0:
            continue
        first = rows[members[0]]
        assert first is not None
        if first.root is None:
            return None
        total += coefficient * first.root
    return total


def bias_gradient(dy: Values) -> Enclosure:
    """The sum of each column of finite values: exact."""
    columns = ([_integer(value) for value in column] for column in dy.T.tolist())
    return enclose([add_balls([(m, 0, e) for m, e in column]) for column in columns])
