"""Counts the evidence for a hypothesis in bits.

    evidence = sum over units of the bits earned - log2 T

T counts every (model, parameter) pair that was tried on the question. A unit (`units`) earns
- from a model that has all its bits: the code length (`code_lengths`) that the model saves; or
  -log2 of the share of other right models that have these bits too, if that is less, because
  right kernels often round alike;
- from another question: the bits by which the code about that answer is shorter, at most 8, where
  the two answers differ. A parameter that was solved for costs what the best unit earns.
For a hypothesis that blames the kernel, only those units count in which it differs from the nearest
harmless hypothesis, or else from the right answer, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import code_lengths, hypothesis, units
from refkernels.diagnosis.fit import LIKE, Fit, same
from refkernels.diagnosis.hypothesis import HARMLESS, Candidate, Claim, Evidence, Prediction
from refkernels.diagnosis.problem import Answer, Array, Doubles, Problem
from refkernels.diagnosis.wrong import wrong_elements

RANDOM_ORDERS = 8  # that stand for all orders of a sum


def apart(model: Array, other: Array, rows: bool = False) -> int:
    """How many elements differ; with `rows`, how many rows, whose elements may share a rounding."""
    different: Array = np.asarray(np.logical_not(same(model, other)))
    if rows and different.ndim > 1:
        different = np.asarray(different.reshape(-1, different.shape[-1]).any(axis=1))
    return int(np.count_nonzero(different))


def agreement(shares: Sequence[float], count: int = 1) -> float:
    """How often, per unit, other right models have the bits of `count` units: p with p^count the
    mean over the models of (share of the units whose bits a model has)^count.

    A kernel runs one algorithm in all units: the mean of the shares overlooks one nearly the same.
    """
    logs = [math.log(share) for share in shares if share > 0.0]
    if not logs:
        return 0.0
    largest = max(logs)
    mean = sum(math.exp(count * (log - largest)) for log in logs) / len(shares)
    return math.exp(largest + math.log(mean) / count)


def errors_alike(problem: Problem, output: str, got: Array, model: Array) -> bool:
    """Whether a model's errors match the kernel's to a quarter of their size, in the root mean
    square of relative errors, and each of most wrong elements; special values must be the same."""
    exact = np.asarray(problem.truth.reference[output])
    if got.shape != model.shape or got.dtype != model.dtype:
        return False
    wide, modelled = to_float64(got), to_float64(model)
    special = ~(np.isfinite(wide) & np.isfinite(modelled))
    if not np.array_equal(wide[special], modelled[special], equal_nan=True):
        return False
    usable = np.isfinite(exact) & np.isfinite(wide)
    unit = np.log2(np.maximum(np.abs(exact), problem.format_of(output).min_normal))
    with np.errstate(all="ignore"):
        # By logarithms: an error where the exact result is 0 may overflow in this unit.
        sizes = [
            np.where(usable, np.log2(np.abs(np.nan_to_num(wide - reference))) - unit, -np.inf)
            for reference in (exact, modelled)
        ]
        largest = max(float(np.max(size, initial=-np.inf)) for size in sizes)
        if largest == -np.inf:
            return False
        error, apart = (float(np.linalg.norm(np.exp2(size - largest))) for size in sizes)
    wrong = usable & wrong_elements(problem, output, got)
    with np.errstate(invalid="ignore", over="ignore"):
        unlike = wrong & (LIKE * np.abs(wide - modelled) > np.abs(wide - exact))
    most_unlike = 2 * np.count_nonzero(unlike) >= np.count_nonzero(wrong) > 0
    return not most_unlike and LIKE * apart <= error


@dataclass(frozen=True)
class Tried:
    """A claim from a family of algorithms, the share of the output's bits that it reproduces, and
    whether it fits."""

    claim: Claim
    share: float
    fits: bool

    def beside(self, alike: float) -> Tried:
        """A copy in which other right models have a unit's bits with the frequency `alike`."""
        return replace(self, claim=self.claim.beside(alike))

    def against(self, model: Array | None) -> Tried:
        """A copy in which the nearest harmless model has these bits."""
        prediction = replace(self.claim.prediction, against=model)
        return replace(self, claim=replace(self.claim, prediction=prediction))


def tried(claim: Claim, truth: Fit, got: Array) -> Tried:
    """A claim compared with the output."""
    model = claim.prediction.bits
    assert model is not None
    share = float(np.mean(same(got, model))) if got.size else 0.0
    return Tried(claim, share, share == 1.0 and not truth.exact)


def by_bits_or_errors(problem: Problem, trial: Tried, truth: Fit, got: Array) -> Tried:
    """The trial; if its model lacks some bits but has the kernel's errors, it fits by these."""
    claim = trial.claim
    model = claim.prediction.bits
    if trial.fits or model is None or not errors_alike(problem, claim.output, got, model):
        return trial
    equal = int(np.count_nonzero(same(got, model)))
    outcome = hypothesis.Outcome(True, equal, got.size, truth.over_bound)
    return replace(trial, claim=replace(claim, prediction=Prediction(outcome=outcome)), fits=True)


def nearest(family: Iterable[Tried], beside_fits: bool) -> list[Claim]:
    """The claims that fit; and for each output and cause the nearest of the others, with the trials
    of all of them. `beside_fits`: even where a claim about that output and cause fits."""
    family = list(family)
    fitting = [trial for trial in family if trial.fits]
    explained = {(trial.claim.output, trial.claim.cause) for trial in fitting}
    nearest_misses: dict[tuple[str, str], Tried] = {}
    for trial in family:
        key = (trial.claim.output, trial.claim.cause)
        if trial.fits or (key in explained and not beside_fits):
            continue
        previous = nearest_misses.get(key)
        best = trial if previous is None or trial.share > previous.share else previous
        trials = trial.claim.trials + (0 if previous is None else previous.claim.trials)
        nearest_misses[key] = replace(best, claim=replace(best.claim, trials=trials))
    return [trial.claim for trial in (*fitting, *nearest_misses.values())]


@dataclass(frozen=True)
class Observed:
    """One observed output: its units, and the code length of each counted element under the null
    model."""

    problem: Problem
    truth: Fit
    got: Array
    units: units.Units
    lengths: Doubles

    def bits_of(self, candidate: Candidate) -> Doubles:
        """The bits that each unit earns from a candidate that fits; one number throughout is one
        unit. A 0, from which a maximum may start, and an infinity have many causes: 8 bits."""
        prediction = candidate.predicts(self.truth.output)
        if prediction is not None and prediction.wrong is not None:
            gained = prediction.bits_gained  # of each element: no shared statistic explains it
            bits = self.lengths if gained is None else self.units.chosen(gained)
            return np.where(self.units.chosen(prediction.wrong), bits, 0.0)
        if prediction is None or prediction.bits is None:
            return np.zeros(self.lengths.size)
        one = np.unique(self.got).size == 1
        if one and self.units.owner.any():
            return replace(self, units=self.units.as_one()).bits_of(candidate)
        most = np.inf if not one or 0.0 < abs(to_float64(self.got).flat[0]) < np.inf else units.CAP
        if candidate.exact:
            gained = self._of_model(candidate, prediction).clip(max=most)
            return gained if prediction.answer is None else self._once(gained, np.isinf)
        assert prediction.answer is not None
        length = code(self.problem, self.got, self.truth.output, prediction.answer, self.units)
        differ = np.logical_not(same(prediction.bits, self.right))
        if prediction.against is not None:
            differ &= np.logical_not(same(self.got, prediction.against))
        # In floats any number is far from 0: one inside the bound speaks for no other question.
        owed = (self.right == 0.0) & ~wrong_elements(self.problem, self.truth.output, self.got)
        saved = np.where(self.units.chosen(differ), self.lengths - length, 0.0)
        saved = np.where(self.units.chosen(owed), np.minimum(saved, 0.0), saved)
        gained = self.units.gained(saved).clip(max=most)
        return self._once(self._once(gained, np.isinf), np.isnan)

    def _once(self, gained: Doubles, special_value: Callable[[Array], Array]) -> Doubles:
        """Many an edit overflows where the kernel does: special values say as much as one unit, and
        infinities also which units they are in."""
        got, right = to_float64(self.got), to_float64(self.right)
        special = self.units.any(self.units.chosen(special_value(got) & np.isfinite(right)))
        ways = math.comb(special.size, int(np.count_nonzero(special)))
        most = units.CAP + (math.log2(ways) if special_value is np.isinf else 0.0)
        share = most / max(float(np.sum(gained[special])), most)
        return np.where(special, gained * share, gained)

    @property
    def right(self) -> Array:
        """The correctly rounded answer."""
        reference = self.problem.truth.reference[self.truth.output]
        return reference.round(formats.of(self.got))[0]

    def _of_model(self, candidate: Candidate, prediction: Prediction) -> Doubles:
        earned = self.units.earned(self.lengths)
        if self.problem.op.function and earned.size > 1:
            # Many a formula is NaN or infinite at an argument: once.
            special = np.flatnonzero(~np.isfinite(to_float64(self.units.chosen(self.got))))
            x = self.units.chosen(self.problem.inputs["x"])[special]
            once = special[np.unique(x, return_index=True)[1]]
            capped = np.minimum(earned[once], units.CAP)
            earned[special], earned[once] = 0.0, capped
        if prediction.alike > 0.0:
            earned = np.minimum(earned, -math.log2(prediction.alike))
        against = prediction.against
        if against is None and candidate.cause not in HARMLESS:
            against = self.right
        if against is not None:
            differ = np.logical_not(same(self.got, against))
            earned = np.where(self.units.any(self.units.chosen(differ)), earned, 0.0)
        return earned

    def left(self, candidate: Candidate) -> Doubles:
        """The code length that a candidate leaves to each unit."""
        prediction = candidate.predicts(self.truth.output)
        if (
            candidate.exact
            or prediction is None
            or prediction.bits is None
            or prediction.answer is None
        ):
            return np.zeros(int(self.units.owner[-1]) + 1)
        length = code(self.problem, self.got, self.truth.output, prediction.answer, self.units)
        return self.units.gained(np.maximum(length, 0.0))


def observe(problem: Problem, got: Array, truth: Fit) -> Observed:
    """An output's units and code lengths."""
    counted = units.of(problem, truth.output, got)
    lengths = code(problem, got, truth.output, problem.truth, counted)
    one = np.full_like(got, got.flat[0])
    if got.size > 1 and same(got, one).all():
        right = problem.truth.reference[truth.output].round(formats.of(got))[0].astype(got.dtype)
        if np.count_nonzero(same(right, one)) > 1:  # a limit that many reach says little throughout
            counted, lengths = counted.as_one(), np.minimum(lengths, units.CAP)
    return Observed(problem, truth, got, counted, lengths)


def code(
    problem: Problem, got: Array, output: str, answer: Answer, counted: units.Units
) -> Doubles:
    """The code lengths of the counted elements about an answer. About the truth, the null model
    allows any of the op's forms. Where one of them overflows, or the bound allows it, no special
    value is a surprise in place of a number: the order of a sum decides whether it is infinite or
    NaN. A 0 that the bound allows costs nothing: what saturates, or cancels, is 0 in many forms of
    the op, and in the plain algorithm of another question, if it is 0 there."""
    reference = answer.reference[output].reshape(-1)[counted.places]
    worked = problem.worked if answer is problem.truth else (answer.plain,)
    answers = [arrays[output] for arrays in worked if output in arrays]
    format = answer.format or formats.of(got)
    exact, bound = np.asarray(reference), counted.chosen(answer.bound[output])

    def steps_of(array: Array) -> Doubles:
        return code_lengths.steps(counted.chosen(array).astype(format.storage), reference)

    def special(array: Array) -> Array:
        owed = np.isfinite(exact) | (np.isinf(exact) & np.isposinf(bound))
        return owed & ~np.isfinite(to_float64(counted.chosen(array)))

    def vanishes(array: Array) -> Array:
        return (to_float64(counted.chosen(array)) == 0.0) & (bound >= np.abs(exact))

    widths = code_lengths.widths(exact, bound, format)
    spreads = [code_lengths.spread((steps_of(a) / widths)[~vanishes(a)]) for a in answers]
    spreads = spreads or [code_lengths.spread(np.zeros(1))]
    overflows = np.any([np.isposinf(bound), *map(special, answers)], axis=0)
    steps = np.where(overflows & special(got), 0.0, steps_of(got))
    forms = [] if answer is problem.truth else answers  # of which each must be 0 there
    told = ~np.all([vanishes(array) for array in (got, *forms)], axis=0)
    lengths = np.zeros(steps.size)
    lengths[told] = code_lengths.lengths(steps[told], max(spreads), widths[told], spreads[0])
    return lengths


def weighed(candidate: Candidate, earned: Doubles, count: int, tried: int) -> Evidence:
    """A candidate's evidence from its units' bits, as one of `tried` (model, parameter) pairs."""
    description, total = math.log2(max(tried, 1)) + candidate.price, float(np.sum(earned))
    described = description + candidate.parameters * float(np.max(earned, initial=0.0))
    bits = total - described
    needed = None
    if bits < Evidence.MATCHED and total > 0.0 and count:
        solved = description + Evidence.MATCHED
        needed = max(math.ceil(solved / (total / count)) + candidate.parameters, count + 1)
    return Evidence(bits, count, needed, described=described)
