"""Compares every hypothesis with a kernel's answer, in one loop, and makes candidates of them.

Each kind of prediction is compared in its own way (`hypothesis.Prediction`): another answer by its
fit, bits by equality; for wrong elements and sizes of errors, the source has done so. `ranking`
then weighs the candidates that fit against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import Fit, correctly_rounded, fit, over_plain
from refkernels.diagnosis.hypothesis import Candidate, Confidence, Hypothesis, Outcome, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.metrology.verdict import UNUSUAL


def candidates(
    problem: Problem,
    outputs: Arrays,
    fits: Mapping[str, Fit],
    hypotheses: Iterable[Hypothesis],
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
    output, the errors of any other. A bound takes far longer to compute than everything else, so it
    is computed only where bits, or errors over the plain algorithm's, have not decided already."""
    answer, output = prediction.answer, truth.output
    assert answer is not None
    reference = answer.reference.get(output)
    if reference is None or reference.shape != got.shape:
        return None, prediction
    equal = correctly_rounded(problem, got, answer, reference)
    error = over_plain(problem, output, got, answer)
    if truth.ordinary:
        possible = equal == got.size and not truth.exact
    else:
        # The error of a single element is one draw, as is the plain algorithm's: the bound decides.
        possible = error is None or error <= UNUSUAL or got.size == 1
    result = fit(problem, output, got, answer) if possible else None
    if result is None:
        return Outcome(False, equal, got.size, over_plain=error), prediction
    fits = result.ordinary or (got.size == 1 and result.fine)
    outcome = Outcome(fits, equal, got.size, result.over_bound, result.over_plain)
    return outcome, _rounded(problem, prediction, output) if outcome.fits else prediction


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
        outcome.equal,
        outcome.elements,
        outcome.over_bound,
        outcome.over_plain,
        dict(hypothesis.details),
        hypothesis.model,
        trials=hypothesis.trials,
        parameters=hypothesis.parameters,
        price=hypothesis.price,
        prediction=prediction if outcome.fits and weighable and prediction.counted else None,
    )
