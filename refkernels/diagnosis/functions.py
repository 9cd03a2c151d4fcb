"""Functions of one variable: bad reductions of arguments, a cancellation, fast approximations.

A reduction with p in the place of pi / 2 answers f at x + k (pi / 2 - p): that is a question like
any other, and its answer explains the output as rounding or does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import evidence, patterns
from refkernels.diagnosis.fit import Fit, fit
from refkernels.diagnosis.hypothesis import Candidate, Confidence, Variant, moved
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem

_CIRCULAR: dict[str, Callable[..., Array]] = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
_PERIODS = {"pi/2": (0.5, 4), "pi": (1.0, 2), "2 pi": (2.0, 1)}  # of pi; how many make a turn
_BITS = (8, 11, 12, 16)  # of each of Cody and Waite's constants
_CANCELS = {
    "gelu": ("erf_cancellation", "tanh_gelu"),
    "gelu_tanh": ("tanh_cancellation", "erf_gelu"),
}
# In units of the working precision, how far an erf or tanh may be off: Abramowitz and Stegun's
# 7.1.26, which errs by 1.5e-7 (PyTorch's), in a dozen operations on numbers below 1.
_SLACK = 16.0
_LEAST = 1 / 16  # of a unit: less than this was never lost beside 1 where it is more than rounding
_REDUCED = 8.0  # units of |x f'(x)| that a reduction in the working precision may lose
_LIBRARY = 4.0  # ulp that a library's function may be off
_EXTRA = 2.0**-48  # relative: what long double and a few operations of it may lose


def reductions(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """sin, cos and tan of arguments reduced with few constants in the working precision."""
    function = _CIRCULAR.get(problem.op.name)
    if function is None or problem.direction == "backward" or problem.format.name == "float64":
        return
    x = problem.inputs["x"].astype(np.float32)
    if not np.any(np.abs(x) > np.pi / 4):
        return
    for told, (part, turn) in _PERIODS.items():
        period = part * math.pi
        for how, constants, fused in _constants(period):
            with np.errstate(all="ignore"):
                if how == "one, fmod":
                    k = np.trunc(x.astype(np.float64) / float(constants[0]))
                else:
                    k = np.rint(x * np.float32(1.0 / period)).astype(np.float64)
                reduced = x
                for constant in constants:
                    reduced = _minus(reduced, k, constant, fused)
                angle = np.fmod(k, turn) * np.longdouble(period)
                values = function(reduced.astype(np.longdouble) + angle).astype(np.float64)
            usable = np.isfinite(values) & np.isfinite(x)
            values = np.where(usable, values, np.asarray(problem.truth.reference["y"]))
            details = {"period": told, "constants": how, "fma": fused}
            spread = np.abs(values) * _EXTRA + np.abs(angle).astype(np.float64) * 2.0**-52
            yield Variant("argument_reduction", details, moved(problem, "y", values, spread))


def _constants(period: float) -> Iterator[tuple[str, list[np.float32], bool]]:
    """The period as one float32, or as several: the first with few bits, so that k times it is
    exact for small k."""
    single = np.float32(period)
    yield "one", [single], False
    yield "one", [single], True
    yield "one, fmod", [single], True
    for bits in _BITS:
        scale = 2.0 ** (bits - 1 - math.floor(math.log2(period)))
        first = np.float32(math.floor(period * scale) / scale)
        second = np.float32(period - float(first))
        yield f"two, the first of {bits} bits", [first, second], False


def _minus(x: Array, k: Array, constant: np.float32, fused: bool) -> Array:
    """x - k c in float32; fused: one rounding (float64 holds the product of two float32)."""
    if fused:
        return (x.astype(np.float64) - k * float(constant)).astype(np.float32)
    return x - k.astype(np.float32) * constant


def find(problem: Problem, outputs: Arrays, fits: dict[str, Fit]) -> list[Candidate]:
    """What errors of an elementwise op show by where they are and how large they are."""
    if not problem.op.elementwise:
        return []
    found: list[Candidate] = []
    for name, got in outputs.items():
        if fits[name].ordinary:
            continue
        mine = [*_cancelled(problem, name, got, fits[name]), *_large(problem, name, got)]
        if all(one.ruled_out for one in mine):
            mine += _fast(problem, name, got)
        found += mine
    return found


def _cancelled(problem: Problem, name: str, got: Array, truth: Fit) -> Iterator[Candidate]:
    """GELU as 0.5 x (1 + erf(x / sqrt 2)), or with tanh, every operation rounded: bits; or errors
    no larger than what the cancellation leaves, of the truth or of the other GELU."""
    if problem.op.name not in _CANCELS:
        return
    if problem.op.name == "gelu" and name == "y":
        forms = list(models(problem))
        for model, values in forms:
            one = evidence.reproduced("erf_cancellation", truth, got, values, model)
            if not one.ruled_out:
                yield replace(one, trials=len(forms))
                return
    other = "gelu_tanh" if problem.op.name == "gelu" else "gelu"
    mine, theirs = _CANCELS[problem.op.name]
    if _worst_is_negative(problem, name, got):
        one = _within(problem, mine, name, got, problem.truth)
        yield one if _lost_so_much(problem, name, got) else replace(one, confidence=None)
    yield _within(problem, theirs, name, got, problem.ask(op=other))


def _worst_is_negative(problem: Problem, name: str, got: Array) -> bool:
    """Whether the element that exceeds its bound most has x < 0: nothing cancels elsewhere."""
    exact, bound = np.asarray(problem.truth.reference[name]), problem.sharp(name)
    with np.errstate(all="ignore"):
        ratio = np.abs(to_float64(got) - exact) / bound
    place = int(np.argmax(np.nan_to_num(ratio, nan=0.0, posinf=0.0)))
    return bool(to_float64(problem.inputs["x"]).reshape(-1)[place] < 0.0)


def _lost_so_much(problem: Problem, name: str, got: Array) -> bool:
    """Whether some y that exceeds its bound is 0, or is off by what one rounding of 1 + erf leaves:
    0.5 x erfc(-x / sqrt 2), whose argument is rounded, is off by far less."""
    if name != "y":
        return True
    exact, wide = np.asarray(problem.truth.reference[name]), to_float64(got)
    unit = min(problem.format.u, formats.BINARY32.u)
    wrong = patterns.wrong_elements(problem, name, got)
    off = np.abs(wide - exact)[wrong]
    return bool(np.any((wide[wrong] == 0.0) | (off > _LEAST * unit * _lost(problem, name)[wrong])))


def _within(problem: Problem, cause: str, name: str, got: Array, answer: Answer) -> Candidate:
    """Consistent: within the answer's bound and the cancellation's."""
    levels = [(min(problem.format.u, formats.BINARY32.u), _SLACK)]
    if problem.format.p < formats.BINARY32.p:
        levels.append((problem.format.u, 2.0 + _LIBRARY))
    for u, units in levels:
        lost = np.nan_to_num(_lost(problem, name) * units * u, nan=0.0, posinf=0.0)
        result = fit(
            problem, name, got, Answer(answer.reference, {name: answer.bound[name] + lost}, {})
        )
        assert result is not None
        fine = result.verdict in ("rounding", "correctly_rounded")
        confidence: Confidence | None = "consistent" if fine else None
        found = Candidate(cause, name, confidence, result.equal, got.size, result.over_bound)
        if fine:
            break
    return found


def _lost(problem: Problem, name: str) -> Array:
    """What a unit of error of erf, or tanh = t, comes to: |x| / 2 in y; |dy| / 2 in dx, and for
    (1 - t)(1 + t) = 1 - t^2 another |dy x z'|, where z is tanh's argument."""
    x = to_float64(problem.inputs["x"])
    if name == "y":
        return 0.5 * np.abs(x)
    dy = np.abs(to_float64(problem.inputs[problem.op.cotangent]))
    with np.errstate(all="ignore"):
        slope = math.sqrt(2.0 / math.pi) * (1.0 + 3.0 * 0.044715 * x * x)
        return np.asarray(0.5 * dy * (1.0 + 2.0 * np.abs(x) * np.minimum(slope, 8.0)))


def models(problem: Problem) -> Iterator[tuple[str, Array]]:
    """The erf form in the working precision, and in the format where that is narrower."""
    x, told = problem.inputs["x"], problem.format.storage
    narrow = problem.format.p < formats.BINARY32.p
    for kind in {told, np.dtype(np.float32)} if narrow else {told}:
        for how, divide, half in (
            ("0.5 x (1 + erf(x / sqrt 2))", True, True),
            ("0.5 x (1 + erf(x sqrt(1/2)))", False, True),
            ("x (0.5 (1 + erf(x / sqrt 2)))", True, False),
            ("x (0.5 (1 + erf(x sqrt(1/2))))", False, False),
        ):
            values = formats.cast(_erf_form(formats.cast(x, kind), divide, half), told)
            yield f"{how} in {kind}", values


def _erf_form(x: Array, divide: bool, half: bool) -> Array:
    """The form with erf rounded once."""
    kind = x.dtype.type
    with np.errstate(all="ignore"):
        scaled = x / kind(math.sqrt(2.0)) if divide else x * kind(math.sqrt(0.5))
        erf = np.array([math.erf(float(v)) for v in scaled.ravel()]).reshape(x.shape)
        inner = kind(1) + formats.cast(erf, x.dtype)
        return np.asarray(kind(0.5) * x * inner if half else x * (kind(0.5) * inner))


def _large(problem: Problem, name: str, got: Array) -> list[Candidate]:
    """sin, cos, tan: every wrong element lies further out than the period, and right ones nearer;
    the errors are no larger than what a reduction in the working precision leaves, u |x| |f'|."""
    if problem.op.name not in _CIRCULAR or name != "y" or "x" not in problem.inputs:
        return []
    wrong = patterns.wrong_elements(problem, name, got)
    x, exact = to_float64(problem.inputs["x"]), np.asarray(problem.truth.reference[name])
    size = np.abs(x)
    if not wrong.any() or wrong.all() or size[wrong].min() <= math.pi:
        return []
    if not np.any(size[~wrong] < size[wrong].min()):
        return []
    slope = 1.0 + exact * exact if problem.op.name == "tan" else 1.0
    with np.errstate(all="ignore"):
        most = problem.truth.bound[name] + _REDUCED * problem.format.u * size * slope
        off = np.abs(to_float64(got) - exact)
    if not np.all((off <= most)[wrong & (size < 1.0 / problem.format.u)]):  # nor is it NaN
        return []
    nearest = float(size[wrong].min())
    return [_pattern("argument_reduction", name, got, wrong, {"from": nearest})]


def _fast(problem: Problem, name: str, got: Array) -> list[Candidate]:
    """Errors spread over ordinary arguments, beyond the limit but small: at least half of the
    working precision's digits are right wherever the value is a normal number."""
    exact, wide = np.asarray(problem.truth.reference[name]), to_float64(got)
    wrong = patterns.wrong_elements(problem, name, got)
    few = max(1, int(patterns.FEW * got.size))
    if np.count_nonzero(wrong) <= few or not np.isfinite(wide[np.isfinite(exact)]).all():
        return []
    normal = np.isfinite(exact) & (np.abs(exact) >= problem.format.min_normal)
    scale = np.maximum(np.abs(exact[normal]), np.minimum(1.0, np.abs(exact[normal]).max(initial=0)))
    off = np.abs(wide[normal] - exact[normal])
    if not normal.any() or np.any(off > math.sqrt(problem.format.u) * scale):
        return []
    return [_pattern("fast_approximation", name, got, wrong, {})]


def _pattern(
    cause: str, name: str, got: Array, wrong: Array, details: dict[str, object]
) -> Candidate:
    number = int(np.count_nonzero(wrong))
    told = {"wrong": number, **details}
    return Candidate(cause, name, "consistent", got.size - number, got.size, details=told)
