"""Sums of products as matrix instructions add them, and accumulators of 16 bits
(`contexts.tensor_cores`): how the factors are taken, the instruction and the ranges of K are found
from the answers.

A product alone is replayed on a sample first. Where it is part of a formula, the formula is read
with it, and fits by its bits, or by errors that are the kernel's, to a quarter of their size. An
accumulator of 16 bits is consistent where the errors are as large as its own.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import LOW, to_float64
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, Format
from refkernels.arithmetic.matrix_instructions import NO_CORE
from refkernels.contexts import tensor_cores
from refkernels.contexts.tensor_cores import CORES, SPLITS, Multiplication, TensorCores
from refkernels.diagnosis import evidence, orders, products
from refkernels.diagnosis.edits import exponentials, identities
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.fit import LIKE, Fit, sized
from refkernels.diagnosis.hypothesis import ORDER, Claim, Hypothesis, Outcome, Prediction, Variant
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.products import Product
from refkernels.diagnosis.variants import precision
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.ops import edits as editing
from refkernels.records.words import OR

_NARROW = {BINARY16: "fp16_accumulation", BFLOAT16: "bf16_accumulation"}
_CAUSES = {
    "TF32": "tf32_inputs",
    "TF32 with ties away": "tf32_inputs",
    "TF32 by truncation": "truncated_inputs",
    "bfloat16": "bf16_inputs",
    "float16": "fp16_inputs",
    "bf16x3": "bf16_parts",
}
_TIES = {"TF32": "even", "TF32 with ties away": "away"}
_LARGEST = 1 << 18  # elements of a formula's inputs
_MOST = 1 << 28  # products of all elements


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Hypothesis]:
    """The ways to multiply matrices that have a kernel's bits, or its errors."""
    for name, got in outputs.items():
        product, truth = products.of(problem, name), fits[name]
        if truth.exact or not np.isfinite(got).any() or formats.of(got).p > BINARY32.p:
            continue
        if product is None:
            float8 = any(array.dtype in LOW for array in problem.inputs.values())
            if (float8 or not truth.ordinary) and problem.size <= _LARGEST:
                yield from _of_formula(problem, got, truth)
            continue
        sampled = orders.sampled(product, got)
        claims = list(_with_all_bits(problem, sampled, got, truth))
        yield from claims
        if not claims and not truth.ordinary:
            yield from _by_errors(problem, sampled, got, truth)
            yield from _in_parts(problem, name) if name in problem.op.sums else ()


def _with_all_bits(
    problem: Problem, sampled: orders.SampledSum, got: Array, truth: Fit
) -> Iterator[Claim]:
    """Of each cause the first way with all bits; right ways say how often others have them."""
    product = sampled.product
    factors = product.a, product.b
    ways = [
        (architecture, how)
        for architecture, how in tensor_cores.multiplications(_digits(*factors), product.terms)
        if how.stored is None or _adds(product, how.length)
    ]
    if not truth.ordinary:
        ways += [("", how) for how in _accumulators(product, got)]
    if product.bias is not None and formats.of(got) in _NARROW:
        ways.append(("hopper", Multiplication(CORES["hopper"], stored=formats.of(got))))
    right: dict[bytes, float] = {}
    exact: dict[str, tuple[Multiplication, str, Array]] = {}
    for architecture, how in ways:
        model, cause = run(how, sampled.sample, got), _cause(how)[0]
        share = float(evidence.same(sampled.sampled, model).mean())
        if cause == ORDER and share < 1.0:
            right[model.tobytes()] = share
        few = product.a.size * product.b.shape[1] <= _MOST
        if share == 1.0 and cause not in exact and few:
            bits = run(how, product, got).reshape(got.shape)
            if evidence.same(got, bits).all():
                exact[cause] = how, how.name(architecture), bits
    for cause, (how, name, bits) in exact.items():
        against = None if cause == ORDER else problem.truth.plain[truth.output]
        alike = evidence.agreement([*right.values()], got.size if cause == ORDER else 1)
        prediction, (_, details) = Prediction(bits=bits, against=against), _cause(how, *factors)
        yield Claim(cause, truth.output, prediction, details, name, len(ways)).beside(alike)


def _in_parts(problem: Problem, output: str) -> Iterator[Variant]:
    """Factors as parts of few digits, of which not all pairs are multiplied: in any order, a sum of
    these pairs' terms, one pair after another along K."""
    letters = {n: own for n, own in problem.op.sums[output].terms.items() if len(own) > 1}
    if len(letters) < 2 or _digits(*(problem.inputs[name] for name in letters)) <= BINARY16.p:
        return
    (summed,) = set.intersection(*map(set, letters.values()))
    others: dict[str, Any] = dict.fromkeys(
        problem.op.optional if problem.direction == "backward" else ()
    )
    for name, split in SPLITS.items():
        if name in _CAUSES and len(split.parts) > 1:
            factors = {}
            for which, (factor, own) in enumerate(letters.items()):
                array = problem.inputs[factor]
                parts = split.of(to_float64(array))
                terms = [parts[pair[which]] for pair in split.pairs]
                joined = np.concatenate(terms, own.index(summed) - len(own))
                factors[factor] = joined.astype(array.dtype)
            answer = problem.ask({**others, **factors})  # no bias of another length
            reference = {output: answer.reference[output]}
            details = {"format": split.parts[0][0].name}
            yield Variant(_CAUSES[name], details, replace(answer, reference=reference))


def run(how: Multiplication, product: Product, got: Array) -> Array:
    """The product, (M, N), in the format of the kernel's answer; the bias is added last."""
    b = np.ascontiguousarray(to_float64(product.b).T)
    with np.errstate(over="ignore", invalid="ignore"):
        total = how.product(to_float64(product.a), b)
        if product.bias is not None:
            total = formats.cast(total + to_float64(product.bias), how.core.narrow or BINARY32)
        return formats.cast(to_float64(total), formats.of(got))


def by_name(name: str, product: Product) -> Multiplication | None:
    """The way to multiply that has this name."""
    ways = list(tensor_cores.multiplications(_digits(product.a, product.b), product.terms))
    ways += [("", how) for f in _NARROW for how in tensor_cores.narrow_accumulators(f, True)]
    return next((how for architecture, how in ways if how.name(architecture) == name), None)


def _accumulators(product: Product, got: Array) -> Iterator[Multiplication]:
    """Those of 16 bits that can give the outputs."""
    own = formats.of(got)
    for format in (own,) if own in _NARROW else _NARROW:
        if _can_give(got, product, own, format):
            accumulators = tensor_cores.narrow_accumulators(format, own != format)
            yield from (how for how in accumulators if _adds(product, how.core.k))


def _adds(product: Product, length: int) -> bool:
    """Whether sums of so many terms are added: not where all terms that are not 0 are in one."""
    terms = (product.a != 0).any(axis=0) & (product.b != 0).any(axis=1)
    return np.unique(np.flatnonzero(terms) // length).size > 1


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


def _by_errors(
    problem: Problem, sampled: orders.SampledSum, got: Array, truth: Fit
) -> Iterator[Claim]:
    """For each format, the accumulator whose errors are nearest in size."""
    product, matrix = sampled.product, sampled.got
    exact = np.asarray(problem.truth.reference[truth.output]).reshape(matrix.shape)
    right = exact[np.ix_(sampled.rows, sampled.columns)]
    family = list(_accumulators(product, got))
    for format in dict.fromkeys(how.core.narrow for how in family):
        of_format = [how for how in family if how.core.narrow == format]

        def distance(how: Multiplication) -> float:
            """|log| of the ratio of the RMS errors, the kernel's to the model's."""
            both = sampled.sampled, run(how, sampled.sample, got)
            usable = np.all(np.isfinite([right, *map(to_float64, both)]), axis=0)
            sizes = [float(np.linalg.norm((to_float64(a) - right)[usable])) for a in both]
            finite = all(0 < size < np.inf for size in sizes)
            return abs(math.log(sizes[0] / sizes[1])) if finite else np.inf

        how = min(of_format, key=distance)
        outcome = Outcome(False, 0, got.size)
        if distance(how) <= math.log(LIKE):
            whole = run(how, product, got)
            special = ~np.isfinite(matrix)  # a number that the accumulator holds is no NaN
            sizes = sized(problem, truth.output, got, whole.reshape(got.shape))
            alike = 1.0 / LIKE <= sizes.over_plain <= LIKE
            if alike and evidence.same(matrix[special], whole[special]).all():
                equal = int(np.count_nonzero(evidence.same(matrix, whole)))
                outcome = Outcome(True, equal, got.size, sizes.over_bound, sizes.over_plain)
        cause, _ = _cause(how)
        prediction = Prediction(outcome=outcome)
        yield Claim(cause, truth.output, prediction, {}, how.name(""), len(of_format))


def _of_formula(problem: Problem, got: Array, truth: Fit) -> Iterator[Claim]:
    """The forms of the op that multiply matrices, in each way: the one with all bits, or the
    nearest of those whose errors are the kernel's. Ways that round the factors alike differ by the
    errors of sums alone: where the products of such factors, summed in float64, are further from
    the kernel than that, so are all; parts of factors have more sums."""
    output, format = truth.output, formats.of(got)
    factors = [array for array in problem.inputs.values() if array.ndim > 1]
    wrong, nearest, tried = wrong_elements(problem, output, got), -1, 0
    exact = np.asarray(problem.truth.reference[output])
    asked = wrong if wrong.any() else np.ones(got.shape, bool)
    best: tuple[str, Multiplication, Array, Array] | None = None
    numbers = functools.cache(partial(_numbers, factors=factors))
    for plain, multiplied, few in _multiplying(problem, output, format):
        error_of_sums = np.median(np.abs(to_float64(plain) - exact)[asked])
        far = dict[str, bool]()
        for architecture, how in _ways(tensor_cores.BINARY8 if few else _digits(*factors), factors):
            tried += 1
            if how.split and how.split not in far:
                summed = to_float64(multiplied(Multiplication(NO_CORE, how.split)))
                allowed = LIKE ** len(SPLITS[how.split].parts) * error_of_sums
                with np.errstate(all="ignore"):
                    apart, error = (np.abs(to_float64(got) - a)[asked] for a in (summed, exact))
                    far[how.split] = bool(np.median(apart - error / LIKE - allowed) > 0.0)
            if far.get(how.split):
                continue
            bits = multiplied(how)
            equal = int(np.count_nonzero(evidence.same(got, bits)))
            alike = wrong.any() and evidence.errors_alike(problem, output, got, bits)
            if best and how.split != best[1].split and numbers(how.split) == numbers(best[1].split):
                alike = False  # errors of sums alone tell these apart: the likeliest is told
            if equal > nearest and (alike or equal == got.size):
                best, nearest = (architecture, how, bits, plain), equal
    if best is None:
        return
    architecture, how, bits, plain = best
    cause, details = _cause(how, *factors)
    if cause == ORDER and nearest < got.size and evidence.errors_alike(problem, output, got, plain):
        return  # so does the plain order
    prediction = Prediction(bits=bits, against=None if cause == ORDER else plain)
    name = how.name(architecture)
    if nearest < got.size:
        name = ", ".join(filter(None, ("matrix instructions", how.split)))  # whichever
        outcome = Outcome(True, nearest, got.size, truth.over_bound)
        prediction = Prediction(wrong=wrong, outcome=outcome)
        details |= {"wrong": int(np.count_nonzero(wrong))}
        if "format" in details:
            same = (s.parts for name, s in SPLITS.items() if numbers(name) == numbers(how.split))
            details["format"] = OR.join(dict.fromkeys(parts[0][0].name for parts in same if parts))
    yield Claim(cause, output, prediction, details, name, tried)


def _ways(digits: int, factors: list[Array]) -> Iterator[tuple[str, Multiplication]]:
    """Those of factors of so many digits; where some have few, with those that are computed in
    fewer, too."""
    yield from tensor_cores.multiplications(digits, 0)
    few = any(a.dtype in LOW or a.dtype.name in ("bfloat16", "float16") for a in factors)
    computed = (name for name, split in SPLITS.items() if few and split.computed)
    yield from (("hopper", Multiplication(CORES["hopper"], name)) for name in computed)


def _multiplying(
    problem: Problem, output: str, format: Format
) -> Iterator[tuple[Array, Callable[[Multiplication], Array], bool]]:
    """The answer of each form that has a product of matrices, its reading in another way, and
    whether the factors have as few digits as float8, whatever the scales beside them have."""
    definition = problem.definition
    float8 = any(array.dtype in LOW for array in problem.inputs.values())
    for form in _forms(problem, output):
        question = problem.direction, form, problem.inputs, problem.params, format
        computed, first = partial(definition.computed, *question), TensorCores(format)

        def read(how: Multiplication, form: Any = form, computed: Any = computed) -> Array:
            find = partial(computed, TensorCores(format, how=how))  # it has every output
            answer: Arrays = problem.once((_multiplying, form, how, format), find)
            return answer[output]

        ways = Multiplication(tensor_cores.FLOAT8["hopper"]), Multiplication(NO_CORE)
        if not evidence.same(*map(read, ways)).all():  # the way to multiply changes it
            few = float8 and computed(first) is not None and first.digits <= tensor_cores.BINARY8
            yield computed()[output], read, few


def _forms(problem: Problem, output: str) -> Iterator[Any]:
    """The op's forms, and these with exponentials by blocks, or with operations exchanged."""
    for name, form in problem.definition.of(problem.direction).forms.items():
        yield form
        screen = Screen(problem, {output: problem.truth.plain[output]}, name, elements=1)
        if screen.has_a_program:
            graph = screen.program.graph
            exchanged = filter(lambda rule: rule(graph), [identities.taking("either", 0)])
            for rule in itertools.chain(exponentials.ways(graph), exchanged):
                yield editing.edited(form, rule)


def _digits(*factors: Array) -> int:
    """The most that a factor has; arrays of integers have none."""
    floats = [a for a in factors if a.dtype.kind not in "iub"]
    return max(
        (tensor_cores.BINARY8 if a.dtype in LOW else formats.of(a).p for a in floats), default=24
    )


def _cause(how: Multiplication, *factors: Array) -> tuple[str, dict[str, Any]]:
    """What the way to multiply is to a kernel that promises its inputs' products."""
    if how.core.p < BINARY32.p:
        return _NARROW[how.core.narrow] if how.core.narrow else "float8_accumulation", {}
    if how.stored is not None and not how.length:
        return "bias_after_rounding", {}
    if how.stored is not None:
        return "partial_sums_rounded", {"format": how.stored.name}
    cause, numbers = _CAUSES.get(how.split, ORDER), partial(_numbers, factors=factors)
    if SPLITS[how.split].computed:
        cause = "computed_factors_rounded"
    if cause == ORDER:
        return cause, {}
    details = {"format": SPLITS[how.split].parts[0][0].name}
    cut = [formats.truncate_to(to_float64(a), BINARY16).astype(float).tobytes() for a in factors]
    if cause == "truncated_inputs" and cut == numbers(how.split):
        details["format"] += f" or {BINARY16.name}"  # the same numbers here
    if how.split in _TIES and len({*map(tuple, map(numbers, _TIES))}) > 1:
        details["ties"] = _TIES[how.split]
    return cause, details


def _numbers(split: str, factors: Sequence[Array]) -> list[bytes]:
    """What is taken of the factors, or most of it; of those that are computed, how."""
    if SPLITS[split].computed:
        return [split.encode()]
    return [SPLITS[split].of(to_float64(factor))[0].tobytes() for factor in factors]
