"""Models of an op that is a formula: its forms and its faults, in every order of summation, with
and without FMA, recognised by their bits.

A fault that merely rounds badly may lack the kernel's bits: beyond the bound of the op's forms and
within its own it is consistent where it errs as much, and evidence only where its model's errors
equal the kernel's. Kernels of 16-bit arrays are modelled in float32, and the forms also with every
result rounded to 16 bits: partial sums too, as in NumPy, or not, as in composed ops.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, get_args

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, BINARY64, working_format
from refkernels.contexts.doubles import Doubles
from refkernels.contexts.working import Network, RoundedArithmetic, ScanOrder
from refkernels.diagnosis import evidence, units
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.fit import LIKE, Fit, fit, over_plain, sized
from refkernels.diagnosis.hypothesis import HARMLESS, ORDER, Claim, Outcome, Prediction
from refkernels.diagnosis.problem import READABLE, Answer, Array, Arrays, Later, Problem
from refkernels.metrology import UNUSUAL
from refkernels.ops.formula import Fault

_SETTINGS: tuple[dict[str, Any], ...] = (
    *(
        {"order": order, "fma": fma}
        for order in ("sequential", "pairwise", "reversed")
        for fma in (False, True)
    ),
    {"order": "NumPy's", "fma": False},
)
_LARGEST = 1 << 18  # elements of the inputs, for arithmetic in 16 bits


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> list[Claim]:
    """The models of each output that fit; of the others, the nearest of each cause. Orders of right
    outputs take long to tell, of a large question that has wrong ones too."""
    wrong = {name: got for name, got in outputs.items() if not fits[name].ordinary}
    outputs = wrong if wrong and problem.size > READABLE else outputs
    narrow = _in_narrow_arithmetic(problem, outputs, fits)
    if problem.formulas is None:
        return evidence.nearest([*_narrow(problem, narrow, fits, [{**problem.plain}])], False)
    family: list[evidence.Tried] = []
    harmless: list[dict[str, Array]] = []
    forms = dict(problem.right_forms)
    for fault in problem.faults:
        if problem.format.name in fault.right_in:
            forms[fault.cause] = getattr(fault, problem.direction)
    beyond = all(1.0 < fits[name].over_bound < np.inf for name in outputs)  # of any order
    for name, formula in forms.items():
        few = 1 if beyond and name in problem.right_forms else None
        for settings, answer in _computed(problem, formula, few):
            harmless.append(answer)
            for trial in _tried(outputs, fits, answer, ORDER, _name(name, settings), []):
                alike = _order_agreement(problem, formula, settings, trial) if trial.fits else 0.0
                family.append(trial.beside(alike))
    family += _narrow(problem, narrow, fits, harmless)
    forms_by_errors = list(_forms_by_errors(problem, outputs, fits))
    family += [evidence.Tried(claim, 0.0, True) for claim in forms_by_errors]
    explained = {claim.output for claim in forms_by_errors}
    wrong_ways = list(faults(problem))
    for fault, formula in wrong_ways:
        affected = fault.changed(outputs)
        far = not fault.unstable and if_far(problem, affected, formula)
        for settings, answer in () if far else _computed(problem, formula):
            name = _name(fault.cause.replace("_", " "), settings)
            family += _tried(affected, fits, answer, fault.cause, name, harmless, fault.details)
    by_bits = {trial.claim.cause for trial in family if trial.share == 1.0}
    for fault, formula in wrong_ways:
        if fault.unstable and fault.cause not in by_bits:
            affected = fault.changed(outputs)
            unexplained = {name: got for name, got in affected.items() if name not in explained}
            beyond_bound = _unstable(problem, affected, fits, fault.cause, formula)
            within_bound = _unstable_by_errors(problem, unexplained, fits, fault.cause, formula)
            family += [evidence.Tried(claim, 0.0, True) for claim in (*beyond_bound, *within_bound)]
    claims = evidence.nearest(family, beside_fits=False)
    if problem.op.formulas is not None:
        return claims
    # Beside the forms of an op with an oracle of its own, frameworks' own kernels are models.
    agreed = {name: chance_agreement(problem, outputs[name], harmless, name) for name in outputs}
    return [claim.beside(agreed[claim.output][claim.cause in HARMLESS]) for claim in claims]


def right_answers(problem: Problem) -> list[dict[str, Array]]:
    """The bits of the op's forms in each order."""
    forms = problem.right_forms.values()
    return [answer for form in forms for _, answer in _computed(problem, form)]


def chance_agreement(
    problem: Problem, got: Array, answers: list[dict[str, Array]], name: str
) -> tuple[float, float]:
    """How often a right kernel has the kernel's bits of a unit, but for those that have all bits:
    beside candidates with a fault, the mean over the answers; beside orders of summation, no less
    than one answer in all units does, nor than by the rule of succession: no list is complete."""
    counted = units.of(problem, name)
    listed = (answer[name] for answer in answers if name in answer)
    distinct = {array.tobytes(): array for array in listed if array.shape == got.shape}.values()
    apart = (counted.any(counted.chosen(~evidence.same(got, array))) for array in distinct)
    shares = [1.0 - float(np.mean(wrong)) for wrong in apart if wrong.any()]
    any_order = (sum(shares) + 1.0) / (len(shares) + 2.0)
    return evidence.agreement(shares), max(evidence.agreement(shares, counted.count), any_order)


def _name(name: str, settings: dict[str, Any]) -> str:
    name += f", {settings['order']} sums" + (", FMA" if settings["fma"] else "")
    if (scan := settings.get("scanned")) is not None:
        name += f", {scan.network} scans of {scan.block} terms" + ", then the totals" * scan.later
    return name


def _settings(problem: Problem) -> tuple[dict[str, Any], ...]:
    """The orders of sums; those of scans too, where the op's first form has some."""

    def find() -> tuple[dict[str, Any], ...]:
        screen = Screen(problem, problem.plain, elements=1)
        scanned = screen.program.of("cumsum") if screen.has_a_program else ()
        terms = max((node.shape[node.option] for node in scanned), default=0)
        whole = max(terms - 1, 31).bit_length()
        blocks = [1 << k for k in range(5, min(whole, 10) + 1)] if terms else []
        ways = itertools.product(blocks, get_args(Network), (False, True))
        scans = (ScanOrder(*way) for way in ways)
        others = ({"order": "pairwise", "fma": False, "scanned": scan} for scan in scans)
        return *_SETTINGS, *others

    return _SETTINGS[:2] if problem.op.elementwise else problem.once(_settings, find)


def faults(problem: Problem) -> Iterator[tuple[Fault, Any]]:
    """The op's faults that this question may show, each with its formula; two together where they
    differ from each one before, and as one of them where the other changes nothing."""
    before: list[dict[str, Array]] = []
    for fault in problem.faults:
        formula, details = getattr(fault, problem.direction), dict(fault.details or {})
        shown = formula is not None and problem.format.name not in fault.right_in
        if not shown or is_right(problem, formula):
            continue
        changed = fault.changed(_plainly(problem, formula))
        if (second := details.pop("with", None)) is not None:
            changed = {n: a for n, a in changed.items() if not any(map(_has(n, a), before))}
        before.append(changed)
        both = changed.keys() if second is None else changed.keys() & _touched(problem, second)
        for names, told in ((both, fault.details), (changed.keys() - both, details)):
            if names:
                yield replace(fault, outputs=tuple(names), details=told), formula


def _touched(problem: Problem, cause: str) -> set[str]:
    """The outputs that an op's fault of this cause alone changes; all, if there is none."""
    alone = (fault for fault in problem.faults if fault.cause == cause and not fault.details)
    formulas = filter(None, (getattr(fault, problem.direction) for fault in alone))
    answers = [_plainly(problem, formula) for formula in formulas]
    same = {n for n, a in problem.plain.items() if answers and all(_has(n, a)(b) for b in answers)}
    return problem.plain.keys() - same


def _has(name: str, bits: Array) -> Callable[[Arrays], bool]:
    return lambda answer: name in answer and bool(evidence.same(bits, answer[name]).all())


def is_right(problem: Problem, formula: Any) -> bool:
    """Whether a formula has all bits of the plain algorithm on this question."""
    answer = _plainly(problem, formula)
    return all(_has(name, bits)(problem.plain) for name, bits in answer.items())


def _plainly(problem: Problem, formula: Any) -> dict[str, Array]:
    return problem.once((_plainly, formula), lambda: problem.computed(formula))


def _computed(
    problem: Problem, formula: Any, orders: int | None = None
) -> list[tuple[dict[str, Any], dict[str, Array]]]:
    """The formula's answer in each order, or the first ones, where its bits are new."""

    def find() -> list[tuple[dict[str, Any], dict[str, Array]]]:
        new: dict[bytes, tuple[dict[str, Any], dict[str, Array]]] = {}
        for settings in _settings(problem)[:orders]:
            answer = problem.computed(formula, **settings)
            bits = sha256(b"".join(array.tobytes() for array in answer.values()))
            new.setdefault(bits.digest(), (settings, answer))
        return list(new.values())

    return problem.once((_computed, formula, orders), find)


def of_function(problem: Problem) -> dict[str, Any]:
    """Of an op that is a function of one number, the named forms, and forward also the others in
    which kernels are known to write it."""
    function, direction = problem.op.real_function, problem.direction
    if function is None:
        return {}
    others = {form.name: form.formula for form in function.forms if direction == "forward"}
    return {**function.formulas.of(direction).forms, **others}


class _Reordered(RoundedArithmetic):
    """Sums, products and Welford's recurrences of `shuffled` terms in a random order, all others as
    asked; `met`: numbers of terms."""

    shuffled, met = 0, frozenset[int]()

    def _places(self, n: int) -> Any:
        self.met |= {n}
        if n == self.shuffled:
            return np.random.default_rng(self.seed).permutation(n)
        return super()._places(n)

    def _sum(self, terms: Array, factors: Sequence[Array] = ()) -> Array:
        self.met |= {terms.shape[-1]}
        if terms.shape[-1] == self.shuffled:
            places = np.random.default_rng(self.seed).permutation(self.shuffled)
            terms, factors = terms[..., places], [part[..., places] for part in factors]
        return super()._sum(terms, factors)


def if_far(
    problem: Problem, outputs: Arrays, formula: Any, asked: Problem | None = None
) -> Answer | None:
    """A formula's answer, or that to another question that was `asked`, as float64 gives it: where
    no output comes near it, in any order of its sums, it needs no bound. None where one does."""
    if not outputs or problem.op.elementwise or problem.format.p > BINARY32.p:
        return None
    question = asked or problem

    def find() -> Answer:
        values = question.computed(formula, Doubles(), BINARY64)
        reference = {n: Enclosure(v.astype(float), 0.0, 0.0) for n, v in values.items()}
        return Answer(reference, {}, Later(lambda: question.computed(formula)))

    answer = question.once((if_far, formula), find)
    for name, got in outputs.items():
        shaped = got.size > 1 and answer.reference[name].shape == got.shape  # a number is one draw
        error = over_plain(problem, name, got, answer) if shaped else None
        if error is None or error <= UNUSUAL**2:
            return None
    return answer


def _order_agreement(
    problem: Problem, formula: Any, settings: dict[str, Any], trial: evidence.Tried
) -> float:
    """How often the form keeps its bits of a unit in random orders of its sums of one length, the
    one that shows least; 0 where it has no sums. Two terms have one order and show none."""
    formulas, bits, name = problem.formulas, trial.claim.prediction.bits, trial.claim.output
    assert formulas is not None
    assert bits is not None
    format, counted = problem.format, units.of(problem, name)
    met: set[int] = set()

    def share(seed: int, terms: int) -> float:
        options = {**settings, "seed": seed, "scalars": formulas.scalars}
        xp = _Reordered(working_format(format), format, **options)
        xp.shuffled = terms
        other = problem.computed(formula, xp)[name]
        met.update(xp.met)
        changed = counted.any(counted.chosen(np.logical_not(evidence.same(bits, other))))
        return 1.0 - float(np.mean(changed))

    share(0, 0)
    alike = [
        evidence.agreement([share(s, n) for s in range(evidence.RANDOM_ORDERS)], counted.count)
        for n in sorted(met)
        if n > 2
    ]
    return max(alike, default=float(bool(met)))


def _in_narrow_arithmetic(
    problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]
) -> dict[str, Array]:
    """The outputs that may come from 16-bit arithmetic, which has other causes in a function that
    leaves its range."""
    if problem.format not in (BINARY16, BFLOAT16) or problem.size > _LARGEST:
        return {}
    return {
        name: got
        for name, got in outputs.items()
        if not fits[name].ordinary
        and name in problem.truth.bound
        and (problem.formulas is not None or np.isfinite(got).all())
    }


def _narrow(
    problem: Problem, wrong: Arrays, fits: Mapping[str, Fit], harmless: list[dict[str, Array]]
) -> Iterator[evidence.Tried]:
    """The forms in 16-bit arithmetic."""
    forms = problem.every_form or of_function(problem) if wrong else {}
    for name, formula in forms.items():
        for arithmetic, settings in itertools.product(("narrow", "composed"), _settings(problem)):
            answer = problem.computed(formula, arithmetic, **settings)
            note = ", in float32 within an op" if arithmetic == "composed" else ""
            model = _name(name, settings) + note
            cause, details = "narrow_intermediates", {"format": problem.format.name}
            yield from _tried(wrong, fits, answer, cause, model, harmless, details)


def _tried(
    outputs: Arrays,
    fits: Mapping[str, Fit],
    answer: dict[str, Array],
    cause: str,
    model: str,
    harmless: list[dict[str, Array]],
    details: Mapping[str, Any] | None = None,
) -> Iterator[evidence.Tried]:
    for name, got in outputs.items():
        bits = answer.get(name)
        if bits is None or bits.shape != got.shape or bits.dtype != got.dtype:
            continue
        apart = partial(evidence.apart, bits)
        against = min((other[name] for other in harmless), key=apart, default=None)
        prediction = Prediction(bits=bits, against=against)
        claim = Claim(cause, name, prediction, dict(details or {}), model)
        yield evidence.tried(claim, fits[name], got)


def _errors(got: Array, model: Array, over_plain: float) -> Prediction:
    """A model that errs as much as the kernel."""
    equal = int(np.count_nonzero(evidence.same(got, model)))
    return Prediction(outcome=Outcome(True, equal, got.size, None, over_plain))


def _forms_by_errors(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """For an unusual output within its bound, the forms whose model errs as much."""
    for name, got in outputs.items():
        if fits[name].ordinary or not fits[name].fine:
            continue
        for form, model in zip(problem.right_forms, problem.worked, strict=True):
            compared = sized(problem, name, got, model[name]) if name in model else None
            if compared is not None and compared.ordinary:
                prediction = _errors(got, model[name], compared.over_plain)
                yield Claim(ORDER, name, prediction, {}, form)


def _unstable_by_errors(
    problem: Problem, outputs: Arrays, fits: Mapping[str, Fit], cause: str, formula: Any
) -> Iterator[Claim]:
    """For an unusual output within its bound that no form explains, the fault that errs as much."""
    for name, got in outputs.items():
        if fits[name].ordinary or not fits[name].fine:
            continue
        model = problem.computed(formula, format=problem.format_of(name))[name]
        over_plain = sized(problem, name, got, model).over_plain
        if 1.0 / LIKE <= over_plain <= LIKE:
            yield Claim(cause, name, _errors(got, model, over_plain))


def _unstable(
    problem: Problem, outputs: Arrays, fits: Mapping[str, Fit], cause: str, formula: Any
) -> Iterator[Claim]:
    """The fault, consistent where the sizes or the places of its errors fit."""
    formulas = problem.formulas
    assert formulas is not None
    question = (problem.direction, formula, problem.inputs, problem.params)
    for name, got in outputs.items():
        if fits[name].ordinary or name not in problem.truth.bound:
            continue
        limit = formulas.bounded(*question, problem.format_of(name))[name]
        model = problem.computed(formula, format=problem.format_of(name))[name]
        reference = problem.truth.reference[name]
        exact, modelled, doubles = np.asarray(reference), to_float64(model), to_float64(got)
        with np.errstate(all="ignore"):
            error, modelled_error = np.abs(doubles - exact), np.abs(modelled - exact)
            wrong = ~(error <= problem.truth.bound[name]) & np.isfinite(exact)
            within = (error <= limit) | ~(limit < np.inf) | ~np.isfinite(exact)
        if not wrong.any() or not within.all():
            continue
        numbers = np.isfinite(doubles) & np.isfinite(modelled)
        if not np.any(wrong & (numbers | ~np.isfinite(doubles))):
            continue  # the model gives no wrong number there, so any would do
        # Elsewhere the order of sums decides whether it is a number: a cancelling variance may be
        # negative.
        settled = np.isfinite(exact) & (limit < np.inf)
        if np.any((np.isfinite(doubles) != np.isfinite(modelled)) & settled):
            continue
        result = fit(
            problem, name, np.where(numbers, got, model),
            Answer({name: reference}, {name: limit}, {name: model}),
        )  # fmt: skip
        ratio = 1.0 if not (wrong & numbers).any() or result is None else result.over_plain
        beyond = modelled_error > problem.truth.bound[name]
        if not 1.0 / LIKE <= ratio <= LIKE or (numbers.all() and not beyond.any()):
            continue  # a model within the bound gives no wrong number
        misplaced = (np.isfinite(doubles) != np.isfinite(modelled)) & np.isfinite(exact)
        either = (wrong | beyond) & numbers
        apart = np.abs(doubles - modelled)[either]
        largest = float(np.max(error[either], initial=0.0)) or 1.0  # so that no square overflows
        between, of_kernel = (np.linalg.norm(errors / largest) for errors in (apart, error[either]))
        same = bool(between * LIKE <= of_kernel)
        counted = same and not misplaced.any()
        by_errors = _errors(got, model, ratio)
        prediction = replace(by_errors, wrong=wrong, counted=counted)
        details = {"wrong": int(np.count_nonzero(wrong))}
        if misplaced.any():
            details["negative"] = int(np.count_nonzero(wrong & ~np.isfinite(doubles)))
        yield Claim(cause, name, prediction, details)
