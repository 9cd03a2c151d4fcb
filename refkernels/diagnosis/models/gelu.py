"""GELU, by erf and by its tanh approximation: one in place of the other, the sigmoid approximation
x σ(1.702 x) in place of both, and cancellation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import Fit, fit
from refkernels.diagnosis.hypothesis import Candidate, Claim, Outcome, Prediction, Variant, moved
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.records.words import SOUND

# The largest error of an erf or tanh in units of the working precision: Abramowitz and Stegun's
# 7.1.26, which errs by 1.5e-7 (PyTorch's), in a dozen operations on numbers below 1.
_SLACK = 16.0
_QUICK = 1.702  # of the sigmoid approximation (Hendrycks and Gimpel 2016, arXiv:1606.08415)
_FLOAT64 = 2.0**-48  # relative: what a few operations in float64 lose
_LEAST_LOSS = 1 / 16  # of a unit: what the rounding of 1 + erf loses, where it shows at all
_LIBRARY = 4.0  # ulp: the largest error of a library's function


# The cause where the op's form cancels, the other op, and the cause where that one is computed.
_CAUSES = {
    "gelu": ("erf_cancellation", "gelu_tanh", "tanh_gelu"),
    "gelu_tanh": ("tanh_cancellation", "gelu", "erf_gelu"),
}


def other(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """x Phi(x) in place of its tanh approximation, or the reverse; the sigmoid approximation."""
    _, other_op, approximated = _CAUSES[problem.op.name]
    yield Variant(approximated, {}, problem.ask(op=other_op))
    (output,) = problem.truth.reference
    x = to_float64(problem.inputs["x"])
    with np.errstate(all="ignore"):
        gate = 1.0 / (1.0 + np.exp(-_QUICK * x))
        values = x * gate
        if problem.direction == "backward":
            slope = gate + _QUICK * values * (1.0 - gate)
            values = to_float64(problem.inputs[problem.op.cotangent]) * slope
    usable = np.isfinite(values)
    values = np.where(usable, values, np.asarray(problem.truth.reference[output]))
    answer = moved(problem, output, values, np.abs(values) * _FLOAT64)
    yield Variant("sigmoid_gelu", {}, answer)


def errors(problem: Problem, name: str, got: Array, truth: Fit) -> list[Claim]:
    """0.5 x (1 + erf(x / sqrt 2)), or with tanh, every operation rounded: recognised by its bits,
    or by errors, from the truth or the other GELU, no larger than the cancellation leaves."""
    cancels, other_op, approximated = _CAUSES[problem.op.name]
    forms = list(models(problem)) if problem.op.name == "gelu" and name == "y" else []
    for model, values in forms:
        if got.size and not truth.exact and evidence.same(got, values).all():
            right = next(models(problem, math.erfc))[1]
            prediction = Prediction(bits=values, against=right)
            return [Claim(cancels, name, prediction, {}, model, trials=len(forms))]
    claims = []
    if _worst_is_negative(problem, name, got):
        outcome = _within(problem, name, got, problem.truth)
        fits = outcome.fits and _cancels(problem, name, got)
        claims.append(Claim(cancels, name, Prediction(outcome=outcome._replace(fits=fits))))
    outcome = _within(problem, name, got, problem.ask(op=other_op))
    return [*claims, Claim(approximated, name, Prediction(outcome=outcome))]


def run(problem: Problem, candidate: Candidate, like: Array) -> Array | None:
    """The bits of the form that a candidate names."""
    return dict(models(problem)).get(str(candidate.model)) if candidate.output == "y" else None


def _worst_is_negative(problem: Problem, name: str, got: Array) -> bool:
    """Whether x < 0 at the largest error / bound: nothing cancels elsewhere."""
    exact, bound = np.asarray(problem.truth.reference[name]), problem.sharp(name)
    with np.errstate(all="ignore"):
        ratio = np.abs(to_float64(got) - exact) / bound
    place = int(np.argmax(np.nan_to_num(ratio, nan=0.0, posinf=0.0)))
    return bool(to_float64(problem.inputs["x"]).reshape(-1)[place] < 0.0)


def _cancels(problem: Problem, name: str, got: Array) -> bool:
    """Whether some y beyond its bound is 0, or errs by what one rounding of 1 + erf leaves. The
    form 0.5 x erfc(-x / sqrt 2), whose argument is rounded, errs by far less."""
    if name != "y":
        return True
    exact, wide = np.asarray(problem.truth.reference[name]), to_float64(got)
    unit = min(problem.format.u, formats.BINARY32.u)
    wrong = wrong_elements(problem, name, got)
    error = np.abs(wide - exact)[wrong]
    return bool(
        np.any(
            (wide[wrong] == 0.0)
            | (error > _LEAST_LOSS * unit * _cancellation_loss(problem, name)[wrong])
        )
    )


def _within(problem: Problem, name: str, got: Array, answer: Answer) -> Outcome:
    """The outcome within the answer's bound plus that of the cancellation."""
    levels = [(min(problem.format.u, formats.BINARY32.u), _SLACK)]
    if problem.format.p < formats.BINARY32.p:
        levels.append((problem.format.u, 2.0 + _LIBRARY))
    for u, units in levels:
        lost = np.nan_to_num(_cancellation_loss(problem, name) * units * u, nan=0.0, posinf=0.0)
        result = fit(
            problem, name, got, Answer(answer.reference, {name: answer.bound[name] + lost}, {})
        )
        assert result is not None
        fits = result.verdict in SOUND
        outcome = Outcome(fits, result.equal, got.size, result.over_bound)
        if fits:
            break
    return outcome


def _cancellation_loss(problem: Problem, name: str) -> Array:
    """The effect of a unit of error in erf, or in t = tanh z: |x| / 2 in y; |dy| / 2 in dx, and
    another |dy x z'| through (1 - t)(1 + t) = 1 - t^2."""
    x = to_float64(problem.inputs["x"])
    if name == "y":
        return 0.5 * np.abs(x)
    dy = np.abs(to_float64(problem.inputs[problem.op.cotangent]))
    with np.errstate(all="ignore"):
        slope = math.sqrt(2.0 / math.pi) * (1.0 + 3.0 * 0.044715 * x * x)
        return np.asarray(0.5 * dy * (1.0 + 2.0 * np.abs(x) * np.minimum(slope, 8.0)))


def models(
    problem: Problem, function: Callable[[float], float] = math.erf
) -> Iterator[tuple[str, Array]]:
    """The erf forms in the working precision, and in the format where that is narrower; or those
    by erfc, which do not cancel."""
    x, storage = problem.inputs["x"], problem.format.storage
    narrow = problem.format.p < formats.BINARY32.p
    for kind in (np.dtype(np.float32), storage) if narrow else (storage,):
        for form, divide, half in (
            ("0.5 x (1 + erf(x / sqrt 2))", True, True),
            ("0.5 x (1 + erf(x sqrt(1/2)))", False, True),
            ("x (0.5 (1 + erf(x / sqrt 2)))", True, False),
            ("x (0.5 (1 + erf(x sqrt(1/2))))", False, False),
        ):
            values = _erf_form(formats.cast(x, kind), divide, half, function)
            yield f"{form} in {kind}", formats.cast(values, storage)


def _erf_form(x: Array, divide: bool, half: bool, function: Callable[[float], float]) -> Array:
    """The form with erf, or erfc, rounded once."""
    kind = x.dtype.type
    with np.errstate(all="ignore"):
        scaled = x / kind(math.sqrt(2.0)) if divide else x * kind(math.sqrt(0.5))
        scaled = scaled if function is math.erf else -scaled
        values = np.array([function(float(value)) for value in scaled.ravel()]).reshape(x.shape)
        inner = formats.cast(values, x.dtype) + kind(function is math.erf)
        return np.asarray(kind(0.5) * x * inner if half else x * (kind(0.5) * inner))
