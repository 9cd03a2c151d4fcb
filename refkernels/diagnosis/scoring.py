"""Compares every hypothesis with a kernel's answer, in one loop, and makes candidates of them.

Another answer is compared by its fit, bits by equality; for wrong elements and sizes of errors, the
source has done so. `ranking` then weighs the candidates that fit against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import of
from refkernels.diagnosis import code_lengths, evidence
from refkernels.diagnosis.fit import Fit, correctly_rounded, fit, over_plain
from refkernels.diagnosis.hypothesis import Candidate, Confidence, Hypothesis, Outcome, Prediction
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.metrology.ulp_errors import ulp
from refkernels.metrology.verdict import UNUSUAL

_SAMPLE = 256  # elements that are looked at first
_ALMOST, _SOME, _FEWEST = 0.9, 0.125, 32  # shares of elements, and a number, that show a question
_SHARP = 8.0  # times the bound, in ulp, of some elements


def candidates(
    problem: Problem, outputs: Arrays, fits: Mapping[str, Fit], hypotheses: Iterable[Hypothesis]
) -> Iterator[Candidate]:
    """The candidate of each hypothesis, for each output that it predicts."""
    for hypothesis in hypotheses:
        for name, got in outputs.items():
            prediction = hypothesis.predicts(name)
            if prediction is None:
                continue
            outcome, prediction = _compared(problem, fits[name], got, prediction)
            if outcome is not None:
                yield _candidate(hypothesis, name, outcome, prediction)


def _compared(
    problem: Problem, truth: Fit, got: Array, prediction: Prediction
) -> tuple[Outcome | None, Prediction]:
    """A prediction's outcome (None for another shape), and the prediction to weigh."""
    if prediction.answer is not None:
        return _by_fit(problem, truth, got, prediction)
    if prediction.outcome is not None:
        return prediction.outcome, prediction
    if prediction.wrong is not None:
        right = got.size - int(np.count_nonzero(prediction.wrong))
        return Outcome(True, right, got.size), prediction
    assert prediction.bits is not None
    equal = int(np.count_nonzero(evidence.same(got, prediction.bits)))
    fits = got.size > 0 and equal == got.size and not truth.exact
    return Outcome(fits, equal, got.size), prediction


def _by_fit(
    problem: Problem, truth: Fit, got: Array, prediction: Prediction
) -> tuple[Outcome | None, Prediction]:
    """Another answer fits where it explains what the truth does not: every bit of an ordinary
    output, the errors of any other. Its bound, which takes the longest, is computed last."""
    answer, output = prediction.answer, truth.output
    assert answer is not None
    reference = answer.reference.get(output)
    if reference is None or reference.shape != got.shape:
        return None, prediction
    equal = correctly_rounded(problem, got, answer, reference)
    error, mostly = over_plain(problem, output, got, answer), False
    if truth.ordinary:
        possible = equal == got.size and not truth.exact
    else:
        # The error of a single element is one draw, as is the plain algorithm's: the bound decides.
        possible = error is None or error <= UNUSUAL or got.size == 1
        mostly = not possible and _mostly_ordinary(problem, output, got, answer)
    # An edit over rows that are read in blocks may have a bound of another shape.
    possible = possible and np.shape(answer.bound[output]) == got.shape
    result = fit(problem, output, got, answer) if possible or mostly else None
    if result is None:
        return Outcome(False, equal, got.size, over_plain=error), prediction
    fits = result.ordinary or ((got.size == 1 or mostly) and result.fine)
    outcome = Outcome(fits, equal, got.size, result.over_bound, result.over_plain)
    return outcome, _rounded(problem, prediction, output) if outcome.fits else prediction


def _mostly_ordinary(problem: Problem, output: str, got: Array, answer: Answer) -> bool:
    """Whether the errors about an answer are of the plain algorithm's size wherever its bound is
    sharp: a form that loses digits elsewhere, as 1 + tanh in a tail, hides no question there."""
    if not problem.op.elementwise:
        return False
    reference, plain = answer.reference[output].reshape(-1), answer.plain[output].reshape(-1)
    got_flat, sample = got.reshape(-1), slice(None, None, max(got.size // _SAMPLE, 1))

    def near(places: Any) -> Array:
        steps = (code_lengths.steps(a[places], reference[places]) for a in (got_flat, plain))
        error, usual = next(steps), code_lengths.spread(next(steps))
        return np.abs(error) <= UNUSUAL * usual

    if np.mean(near(sample)) < _SOME:
        return False
    with np.errstate(all="ignore"):
        exact = np.asarray(reference)
        widths = np.broadcast_to(answer.bound[output], got.shape).reshape(-1) / ulp(exact, of(got))
        sharp = widths <= _SHARP * np.quantile(widths, _SOME)
    telling = np.flatnonzero(sharp & wrong_elements(problem, output, got).reshape(-1))
    return telling.size >= _FEWEST and bool(np.mean(near(telling)) >= _ALMOST)


def _rounded(problem: Problem, prediction: Prediction, output: str) -> Prediction:
    """The prediction with the bits of its answer's correct rounding."""
    answer, format = prediction.answer, problem.format_of(output)
    assert answer is not None
    rounded = answer.reference[output].round(answer.format or format)[0]
    return replace(prediction, bits=rounded.astype(format.storage))


def _candidate(
    hypothesis: Hypothesis, output: str, outcome: Outcome, prediction: Prediction
) -> Candidate:
    """The candidate. One that fits is consistent until its bits, if any, are weighed."""
    weighable = prediction.bits is not None or prediction.wrong is not None
    confidence: Confidence | None = "consistent" if outcome.fits else None
    return Candidate(
        hypothesis.cause,
        output,
        confidence,
        *outcome[1:],
        dict(hypothesis.details),
        hypothesis.model,
        trials=hypothesis.trials,
        parameters=hypothesis.parameters,
        price=hypothesis.price,
        prediction=prediction if outcome.fits and weighable and prediction.counted else None,
    )
