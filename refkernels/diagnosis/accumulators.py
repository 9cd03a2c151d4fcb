"""Sums of products whose accumulator is float16 or bfloat16.

acc = fl16(acc + a b), with the product rounded to the format first (two instructions) or not (an
FMA, or a wider adder); or acc = fl16(acc + s) with s the sum of a block of products, as in matrix
units that add a block at once. Equal bits prove it. Without them it is consistent where the errors
are as large as this accumulator's, in a sample and in the whole output: a sample may lack the few
elements that are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis import evidence, products
from refkernels.diagnosis.fit import LIKE, Fit, sized
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.products import Product
from refkernels.diagnosis.variants import precision

_CAUSES = {"float16": "fp16_accumulation", "bfloat16": "bf16_accumulation"}
_BLOCKS = (1, 4, 8, 16, 32)  # products added at once
_SAMPLE = 16  # rows and columns at each end of the sample


@dataclass(frozen=True)
class _Accumulator:
    """`narrow`: the factors are rounded to the format too; `rounds`: so is each product."""

    format: str
    block: int = 1
    narrow: bool = False
    rounds: bool = False

    @property
    def name(self) -> str:
        steps = "in sequence" if self.block == 1 else f"blocks of {self.block} in sequence"
        inputs = f", {self.format} inputs" if self.narrow else ""
        rounding = ", products rounded" if self.rounds else ""
        return f"{steps} in {self.format}{inputs}{rounding}"

    def run(self, product: Product, format: str) -> Array:
        """(M, N) in the output's format. float64 holds products of 11-bit and of 24-bit numbers
        exactly, and its rounding of a sum of two is far below the accumulator's."""
        factors = (product.a, product.b)
        a, b = map(self._rounded if self.narrow else to_float64, factors)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.zeros((len(a), b.shape[1]))
            for k in range(0, product.terms, self.block):
                step = a[:, k : k + self.block] @ b[k : k + self.block]
                total = self._rounded(total + (self._rounded(step) if self.rounds else step))
            if product.bias is not None:
                total = self._rounded(total + to_float64(product.bias))
        return formats.cast(total, format)

    def _rounded(self, values: Array) -> Array:
        """Rounded to the accumulator's format, and converted back to float64."""
        return to_float64(formats.cast(values, self.format))


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """For each output that is not ordinary, the accumulator that reproduces its bits or errors."""
    for name, got in outputs.items():
        product = products.of(problem, name)
        own_format = formats.of(got)
        explained = fits[name].ordinary or own_format.name == "float64"
        if product is None or explained or not np.isfinite(got).any():
            continue
        narrow = own_format.name if own_format.name in _CAUSES else None
        for format in (narrow,) if narrow else _CAUSES:
            # One that holds the whole sum before it rounds is no narrow accumulator.
            family = [one for one in known(format, own_format.name) if one.block < product.terms]
            if family and _can_give(got, product, own_format, formats.get(format)):
                yield _claim_of(problem, product, got, fits[name], format, family)


def _can_give(got: Array, product: Product, output_format: Format, format: Format) -> bool:
    """Whether an accumulator of the format can give the outputs: they are its numbers, or its
    numbers plus the bias, rounded once. Without the bias these lie within u |y| of its numbers."""
    if precision.all_in(got, format):
        return True
    if product.bias is None:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        total = got.astype(np.float64) - product.bias.astype(np.float64)
        distance = np.abs(total - to_float64(formats.cast(total, format)))
        # y = (total + bias)(1 + e), |e| <= u, so |total' - total| <= u / (1 - u) |y|; the
        # difference of two float32 in float64 errs by far less than the other u.
        return bool(np.all((distance <= 2.0 * output_format.u * np.abs(got)) | ~np.isfinite(total)))


def _claim_of(
    problem: Problem,
    product: Product,
    got: Array,
    truth: Fit,
    format: str,
    family: list[_Accumulator],
) -> Claim:
    output_format = formats.of(got).name
    matrix = got.reshape(len(product.a), product.b.shape[1])
    part, sampled = _sample(product, matrix)
    exact = np.asarray(problem.truth.reference[truth.output]).reshape(matrix.shape)
    right = _sample(product, exact)[1]
    nearest: tuple[float, _Accumulator] | None = None

    def claim(accumulator: _Accumulator, prediction: Prediction) -> Claim:
        cause, trials = _CAUSES[format], len(family)
        return Claim(cause, truth.output, prediction, {}, accumulator.name, trials)

    for accumulator in family:
        model = accumulator.run(part, output_format)
        if evidence.same(model, sampled).all():
            whole = accumulator.run(product, output_format).reshape(got.shape)
            if evidence.reproduces(truth, got, whole):
                return claim(accumulator, Prediction(bits=whole))
        distance = _log_error_ratio(sampled, model, right)
        if nearest is None or distance < nearest[0]:
            nearest = (distance, accumulator)
    assert nearest is not None
    distance, accumulator = nearest
    outcome = Outcome(False, 0, got.size)
    if distance <= math.log(LIKE):
        whole = accumulator.run(product, output_format)
        special = ~np.isfinite(matrix)  # a number that the accumulator holds is no NaN
        overflows = evidence.same(matrix[special], whole[special]).all()
        if overflows and _log_error_ratio(matrix, whole, exact) <= math.log(LIKE):
            outcome = _judged_by_size(problem, got, truth.output, whole.reshape(got.shape))
    return claim(accumulator, Prediction(outcome=outcome))


def known(format: str, output_format: str) -> Iterator[_Accumulator]:
    for narrow in (False, True) if output_format != format else (False,):
        for block in _BLOCKS:
            yield _Accumulator(format, block, narrow)
            if block == 1:
                yield _Accumulator(format, block, narrow, rounds=True)


def _sample(product: Product, got: Array) -> tuple[Product, Array]:
    rows = np.unique(np.linspace(0, len(product.a) - 1, _SAMPLE).astype(int))
    columns = np.unique(np.linspace(0, product.b.shape[1] - 1, _SAMPLE).astype(int))
    part = replace(
        product,
        a=product.a[rows],
        b=product.b[:, columns],
        bias=None if product.bias is None else product.bias[columns],
    )
    return part, np.ascontiguousarray(got[np.ix_(rows, columns)])


def _log_error_ratio(got: Array, model: Array, exact: Array) -> float:
    """|log| of the ratio of the RMS errors, the kernel's to the model's."""
    answers = [values.astype(np.float64) for values in (got, model)]
    usable = np.isfinite(exact) & np.isfinite(answers[0]) & np.isfinite(answers[1])
    if not usable.any():
        return math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        errors = [np.sqrt(np.mean(np.square((values - exact)[usable]))) for values in answers]
    if not all(np.isfinite(errors)) or not all(errors):
        return math.inf
    return abs(math.log(errors[0] / errors[1]))


def _judged_by_size(problem: Problem, got: Array, output: str, model: Array) -> Outcome:
    sizes = sized(problem, output, got, model)
    equal = int(np.count_nonzero(evidence.same(got, model)))
    return Outcome(True, equal, got.size, sizes.over_bound, sizes.over_plain)
