"""Every captured op of a run judged on its own inputs: verdict, error / bound, cause.

An output within its bound, with errors like the plain algorithm's, is rounding. Any other is
explained; once an op's same outputs have shown one cause in several places, without a search.
What another run has asked and answered with the same bits is judged once.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.alignment.layers import read_layers
from refkernels.alignment.question import CapturedQuestion, Place, Read, Unjudged
from refkernels.alignment.run import Rank, Run
from refkernels.alignment.tensors import Array
from refkernels.alignment.updates import read_updates
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.contexts import RoundedArithmetic
from refkernels.diagnosis.code_lengths import steps
from refkernels.diagnosis.explain import explain_kernel, one_kernel
from refkernels.diagnosis.fit import Fit, fit
from refkernels.diagnosis.problem import Problem
from refkernels.metrology.verdict import RmsErrors
from refkernels.records.codec import number
from refkernels.records.words import INSIDE, SOUND
from refkernels.training.steps import answers

BIASED = 4.0  # standard deviations of the mean of signed errors
_WEIGHTS = ("weight", "bias")
_FEW = 30  # fewer signed errors show no bias
_FACTOR = "scale_factor"  # a cause that gives the amount, not the reason
_DENOMINATORS = frozenset(
    ("sum_instead_of_mean", "all_rows_denominator", "row_count_denominator", "batch_denominator")
)  # of a loss's rows, each a factor of its gradient
_Causes = dict[str, dict[str, Any]]  # by output
# By the digest of a question and its answer: its judgements, or why there are none.
Judged = dict[bytes, "list[LocalJudgement] | str"]
_SEARCHES = 2  # searches for one op and type before its cause is taken to be the same
# Causes that keep any op's definition: they round worse, or store numbers in a narrower format.
_NUMERICAL = frozenset(json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")))


@functools.cache
def numerical(op: str, cause: str | None) -> bool:
    """Whether a cause equals the op in exact arithmetic: one that any op may have, or an unstable
    way to compute this op (`Fault.unstable`)."""
    faults = getattr(registry.get(op).definition, "faults", ())
    return cause in _NUMERICAL or any(one.cause == cause and one.unstable for one in faults)


@dataclass(frozen=True)
class LocalJudgement:
    """One output of a question. `over_bound`: the largest error / bound, at `worst`; `cause`: that
    of the whole question; `bias`: mean of the signed errors in its standard deviations.
    `attributed`: False for a weight's gradient that this layer does not explain: a function may use
    the weight too. `negligible`: what breaks its bound is off by at most a rounding of the largest
    element, as a masked probability of e^-64. `gross`: half of the digits are wrong. `apart`: the
    errors' norm over the answer's. `declared`: a form that the framework documents as its own.
    `users`: of the user's own class, which may be what it likes."""

    place: Place
    op: str
    direction: str
    type: str
    output: str
    verdict: str
    unusual: bool
    over_bound: float
    over_plain: float
    elements: int
    worst: str
    bias: float = 0.0
    attributed: bool = True
    negligible: bool = False
    gross: bool = False
    apart: float = 0.0
    declared: bool = False
    cause: str | None = None
    confidence: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    summary: str = ""
    errors: RmsErrors | None = None
    users: bool = False

    @property
    def ordinary(self) -> bool:
        """Whether it is the definition up to ordinary rounding."""
        return self.verdict in SOUND and not self.unusual

    @property
    def wrong(self) -> bool:
        """Whether no kernel of the definition gives this answer: it breaks a bound, or the evidence
        shows another definition."""
        bad = self.verdict not in INSIDE or self._shows_other_definition
        return bad and self.attributed

    @property
    def redefined(self) -> bool:
        """Whether it is visibly another definition, and not the same one computed worse: by its
        cause, or by its size where no cause is sure."""
        if not self.wrong or self.negligible or numerical(self.op, self.cause):
            return False
        return self.gross or (self._shows_other_definition and self.cause != _FACTOR)

    @property
    def _shows_other_definition(self) -> bool:
        sure = self.cause is not None and self.confidence != "consistent"
        return sure and not numerical(self.op, self.cause)

    @property
    def coarse(self) -> bool:
        """Whether it is known to be the definition computed worse, as in a narrower format."""
        sure = self.cause is not None and self.confidence != "consistent"
        return self.wrong and sure and numerical(self.op, self.cause)

    def to_dict(self) -> dict[str, Any]:
        """Its record."""
        fields = {**asdict(self), **asdict(self.place), "wrong": self.wrong}
        fields["redefined"] = self.redefined
        return {name: fields[name] for name in fields if name not in ("place", "errors", "users")}


@dataclass(frozen=True)
class LocalTruth:
    """The oracles' judgements of a run, in the order of the run. `sees_functions`: whether the
    probe names every function that the model calls outside layers."""

    judgements: tuple[LocalJudgement, ...]
    unjudged: tuple[Unjudged, ...]
    not_captured: tuple[str, ...]
    sees_functions: bool = False

    @property
    def wrong(self) -> tuple[LocalJudgement, ...]:
        """The judgements beyond rounding, in the order of the run."""
        return tuple(judgement for judgement in self.judgements if judgement.wrong)

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Layers whose weights' gradients do not follow from the layer's own calls."""
        beyond = (one for one in self.judgements if not one.attributed)
        named = (one.place.name for one in beyond if not numerical(one.op, one.cause))
        return tuple(dict.fromkeys(named))


def judge_run(
    run: Run,
    chosen: tuple[int, ...] | None = None,
    progress: Callable[[str], None] = lambda line: None,
    judged: Judged | None = None,
) -> LocalTruth:
    """Judges all captured steps of all ranks, or the chosen ones; `judged`: those of other runs."""
    judged = {} if judged is None else judged
    judgements: list[LocalJudgement] = []
    unjudged: dict[Unjudged, None] = {}
    searched: dict[tuple[str, ...], list[_Causes]] = {}
    for rank in run.ranks:
        for step in (one for one in rank.steps if chosen is None or one in chosen):
            progress(f"{run.folder.name}: step {step} of rank {rank.rank}")
            for item in _questions(rank, step):
                if isinstance(item, Unjudged):
                    unjudged[item] = None
                    continue
                digest = item.digest
                if digest not in judged:
                    try:
                        judged[digest] = _judged(item, searched)
                    except (ValueError, TypeError) as error:
                        judged[digest] = str(error).rstrip(".")
                found = judged[digest]
                if isinstance(found, str):
                    unjudged[Unjudged(item.place.name, item.type, found)] = None
                    continue
                for judgement in found:
                    worst = judgement.worst if item.parts else item.place.name
                    judgements.append(replace(judgement, place=item.place, worst=worst))
    missing = tuple(dict.fromkeys(remark for rank in run.ranks for remark in rank.not_captured))
    in_order = sorted(judgements, key=lambda judgement: judgement.place.when)
    sees_functions = all(  # a recorded layer that contains layers hides its own computations
        rank.framework == "torch" and not any(map(rank.contains, rank.layers)) for rank in run.ranks
    )
    return LocalTruth(tuple(in_order), tuple(unjudged), missing, sees_functions)


def judge_questions(rank: Rank, step: int, xp: RoundedArithmetic) -> list[LocalJudgement]:
    """Judges an arithmetic on a step's questions, the first of each op and pass."""
    judged: list[LocalJudgement] = []
    asked = reversed([one for one in _questions(rank, step) if not isinstance(one, Unjudged)])
    for question in {(one.op, one.direction): one for one in asked}.values():
        try:
            outputs = answers(xp, question.op, question.inputs, question.params, question.direction)
            wanted = {name: outputs[name] for name in question.outputs if name in outputs}
            judged += _judged(replace(question, outputs=wanted), None) if wanted else []
        except (ValueError, TypeError):
            continue
    return judged


def _questions(rank: Rank, step: int) -> Read:
    line = next(line for line in rank.lines if line.step == step)
    tensors = rank.tensors(step)
    yield from read_layers(rank, step, tensors)
    yield from read_updates(rank, line, tensors)


@with_default_fenv
@np.errstate(all="ignore")
def _judged(
    question: CapturedQuestion, searched: dict[tuple[str, ...], list[_Causes]] | None
) -> list[LocalJudgement]:
    """The judgements of a question. `searched`: the causes found before, by op; None: no causes are
    searched for."""
    problem, outputs = one_kernel(
        question.op, question.inputs, question.outputs, question.params, question.direction
    )
    fits = {name: fit(problem, name, output, problem.truth) for name, output in outputs.items()}
    judgeable = {name: fit for name, fit in fits.items() if fit is not None}
    causes: _Causes = {}
    odd = sorted(name for name, fit in judgeable.items() if not fit.ordinary)
    if searched is not None and odd and not question.elsewhere:
        # What is told of places that are not searched is told of the outputs that are wrong there.
        earlier = searched.setdefault((question.op, question.direction, question.type, *odd), [])
        several = len({tuple(str(each[n]["cause"]) for n in odd) for each in earlier}) > 1
        if question.own or len(earlier) < _SEARCHES or several:
            causes = _explained(problem, outputs, odd, question.own)
            earlier.append(causes)
        else:
            causes = {name: {**cause, "summary": ""} for name, cause in earlier[0].items()}
    judged = [
        _judgement(question, problem, name, outputs[name], fit, causes.get(name, {}))
        for name, fit in judgeable.items()
    ]
    unexplained = any(j.wrong and j.confidence not in ("proven", "matched") for j in judged)
    narrow = problem.format.p < formats.get("float32").p
    if question.place.stage == "update" and unexplained and narrow:
        raise ValueError(
            f"it errs by more than one rounding to {problem.format}, as several operations that "
            "each round to it do, and no bound is proven for these"
        )
    return judged


def _explained(
    problem: Problem, outputs: dict[str, Array], odd: Sequence[str], own: Container[str]
) -> _Causes:
    """The cause of each odd output: the whole question's where it explains that one too, else its
    own. What one of the framework's `own` forms explains as well is attributed to that form, as an
    lr of 1/10 inside the momentum, or an eps that is not scaled with v. Where a factor explains a
    gradient as well as another denominator does, only the factor is certain: whatever multiplies
    the loss or its gradient gives it, and a wrong denominator shows in the loss."""
    explanation = explain_kernel(problem, outputs)
    causes: _Causes = {}
    for output in odd:
        of_output = [other for other in explanation.candidates if other.output == output]
        eligible = [other for other in of_output if explanation.cause and not other.ruled_out]
        named = min(eligible, key=lambda other: other.cause != explanation.cause, default=None)
        if named is not None:
            survivors = () if named.evidence is None else named.evidence.survivors
            declared = [
                other for other in of_output
                if other.cause in own and (other.cause in survivors or other.fits_as_well_as(named))
            ]  # fmt: skip
            if declared:
                named = replace(declared[0], confidence=declared[0].confidence or "consistent")
            elif problem.direction == "backward" and named.cause in _DENOMINATORS:
                factors = (other for other in of_output if other.cause == _FACTOR)
                named = next(factors, named) if _FACTOR in survivors else named
        causes[output] = {
            "cause": None if named is None else named.cause,
            "confidence": None if named is None else named.confidence,
            "details": {} if named is None else dict(named.details),
            "summary": explanation.summary,
        }
    return causes


def _judgement(
    question: CapturedQuestion, problem: Problem, output: str, answer: Array, fit: Fit,
    cause: dict[str, Any],
) -> LocalJudgement:  # fmt: skip
    cause_of_output = {} if fit.ordinary else cause
    worst = question.part(fit.place or 0) if question.parts else question.place.name
    of_weight = question.place.stage == "backward" and output[1:] in _WEIGHTS
    unexplained = of_weight and cause_of_output.get("confidence") not in ("proven", "matched")
    return LocalJudgement(
        question.place, question.op, question.direction, question.type, output, fit.verdict,
        "unusual" in fit.flags, number(fit.over_bound) or 0.0, fit.over_plain, fit.elements, worst,
        attributed=fit.ordinary or not unexplained, errors=fit.errors, users=question.users,
        declared=cause_of_output.get("cause") in question.own and not fit.ordinary,
        **_size(question, problem, output, answer, fit), **cause_of_output,
    )  # fmt: skip


def _size(
    question: CapturedQuestion, problem: Problem, output: str, answer: Array, fit: Fit
) -> dict[str, Any]:
    """The size of an output's errors, apart from its bound, and their bias: the mean of the signed
    errors, in floats, in its own standard deviations."""
    exact = np.asarray(problem.truth.reference[output])
    format = problem.format_of(output)
    errors = np.abs(to_float64(answer) - exact)
    beyond = errors[~(errors <= problem.truth.bound[output])]
    largest = float(np.max(np.abs(exact), initial=0.0))
    negligible = beyond.size > 0 and float(np.max(beyond)) <= format.u * largest < math.inf
    half = 2.0 ** (format.p / 2)  # of its digits
    norms = float(np.linalg.norm(errors)), float(np.linalg.norm(exact))
    gross = bool(norms[0] * half > norms[1] or (number(fit.over_bound) or 0.0) > half)
    apart = norms[0] / norms[1] if norms[1] else math.inf if norms[0] else 0.0
    signed = steps(answer.reshape(-1), problem.truth.reference[output].reshape(-1))
    signed = signed[(np.abs(signed) < 2.0**31) & (signed != 0.0)]
    spread = math.sqrt(float(np.mean(np.square(signed)))) if signed.size >= _FEW else math.inf
    bias = float(np.sum(signed)) / math.sqrt(max(signed.size, 1)) / spread
    size = {"negligible": negligible and not question.parts, "gross": gross, "apart": apart}
    return {**size, "bias": bias}
