"""Every captured op of a run judged on its own inputs: verdict, error / bound, cause.

Nothing here compares runs, and no error of one op reaches the next: what a layer is held against is
the certified answer to the inputs that it got. What keeps to its bound, and errs as the plain
algorithm does, is rounding. What does not is explained; the same op with the same cause in later
places is taken to be so explained, and is not searched again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from refkernels.alignment.causes import numerical
from refkernels.alignment.layers import read_layers
from refkernels.alignment.question import Array, CapturedQuestion, Place, Unjudged
from refkernels.alignment.run import Rank, Run
from refkernels.alignment.updates import read_updates
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.mode import in_default_mode
from refkernels.diagnosis.code_lengths import steps
from refkernels.diagnosis.explain import explain_kernel, one_kernel
from refkernels.diagnosis.fit import Fit, fit_to_truth
from refkernels.diagnosis.problem import Problem
from refkernels.op import Direction
from refkernels.records.codec import number

Answers = Callable[
    [str, Direction, Mapping[str, Array], Mapping[str, Any]], "dict[str, Array] | None"
]
_SEEING = "torch"  # whose functions the probe sees, outside of recorded layers
BIASED = 4.0  # standard deviations of the mean of signed errors
_WEIGHTS = ("weight", "bias")
_FEW = 30  # signed errors say nothing of a side
_FACTOR = "scale_factor"  # which says by how much, and not why
_SEARCHES = 2  # of one op with one type, before its cause is taken to be the same


@dataclass(frozen=True)
class Judgement:
    """One output of a question. `over_bound`: the largest error / bound; `worst`: the parameter or
    tensor that has it; `cause` and `confidence` as `explain` gives them, of the whole question;
    `bias`: mean of the signed errors in standard deviations of that mean. `attributed`: False of a
    weight's gradient that this layer does not explain: a function may use the weight too.
    `negligible`: no element that breaks its bound is off by more than the rounding of its tensor's
    largest, as where a masked probability is e^-64 and not 0. `gross`: half of the digits are wrong
    in norm, or the bound is broken by as much. `declared`: the cause is a form that the framework's
    documentation gives as its own."""

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
    declared: bool = False
    cause: str | None = None
    confidence: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    summary: str = ""

    @property
    def ordinary(self) -> bool:
        """Whether it is what rounding makes of the definition."""
        return self.verdict in ("rounding", "correctly_rounded") and not self.unusual

    @property
    def wrong(self) -> bool:
        """Whether no kernel of the definition answers so: a bound is broken, or evidence says that
        another definition was computed."""
        bad = self.verdict not in ("rounding", "correctly_rounded") or self._renamed
        return bad and self.attributed

    @property
    def redefined(self) -> bool:
        """Whether it is another definition, and not the same one computed worse, and it shows: by
        its cause, or where none is sure, by its size."""
        if not self.wrong or self.negligible or numerical(self.op, self.cause):
            return False
        return self.gross or (self._renamed and self.cause != _FACTOR)

    @property
    def _renamed(self) -> bool:
        sure = self.cause is not None and self.confidence != "consistent"
        return sure and not numerical(self.op, self.cause)

    @property
    def one_sided(self) -> bool:
        """Whether the roundings lean to one side more than chance does."""
        return abs(self.bias) > BIASED


@dataclass(frozen=True)
class LocalTruth:
    """What the oracles say of a run, in the order of the run. `sees_functions`: whether the probe
    would have named every function that the model calls outside of layers."""

    judgements: tuple[Judgement, ...]
    unjudged: tuple[Unjudged, ...]
    not_captured: tuple[str, ...]
    sees_functions: bool = False

    @property
    def wrong(self) -> tuple[Judgement, ...]:
        """What is no rounding, the first first."""
        return tuple(one for one in self.judgements if one.wrong)

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Layers whose weights have gradients that the layer's own calls do not make."""
        names = (
            one.place.name
            for one in self.judgements
            if not one.attributed and not numerical(one.op, one.cause)
        )
        return tuple(dict.fromkeys(names))


def judge_run(
    run: Run,
    chosen: tuple[int, ...] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> LocalTruth:
    """All captured steps of all ranks, or the chosen ones."""
    judgements: list[Judgement] = []
    unjudged: dict[Unjudged, None] = {}
    searched: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for rank in run.ranks:
        for step in rank.steps:
            if chosen is not None and step not in chosen:
                continue
            progress(f"{run.folder.name}: step {step} of rank {rank.rank}")
            for question, aside in _read(rank, step):
                unjudged |= dict.fromkeys(aside)
                if question is None:
                    continue
                try:
                    judgements += _judged(question, searched)
                except (ValueError, TypeError) as error:
                    reason = str(error).rstrip(".")
                    unjudged[Unjudged(question.place.name, question.type, reason)] = None
    missing = tuple(dict.fromkeys(one for rank in run.ranks for one in rank.not_captured))
    in_order = sorted(judgements, key=lambda one: one.place.when)
    sees = all(rank.framework == _SEEING and not _containers(rank) for rank in run.ranks)
    return LocalTruth(tuple(in_order), tuple(unjudged), missing, sees)


def judge_questions(rank: Rank, step: int, answer: Answers) -> list[Judgement]:
    """What other kernels would get for a step's own questions, the first of each op and pass:
    `answer` gives their outputs, None of an op that it does not know."""
    judged: list[Judgement] = []
    seen = set()
    for question, _ in _read(rank, step):
        if question is None or (question.op, question.direction) in seen:
            continue
        seen.add((question.op, question.direction))
        asked = question.op, question.direction, question.inputs, question.params
        try:
            outputs = answer(*asked)
            if outputs is not None:
                known = {name: outputs[name] for name in question.outputs if name in outputs}
                judged += _judged(replace(question, outputs=known), None)
        except (ValueError, TypeError):
            continue
    return judged


def _containers(rank: Rank) -> list[str]:
    """Recorded layers with layers within: what they compute themselves is not seen."""
    return [name for name in rank.layers if rank.contains(name)]


def _read(rank: Rank, step: int) -> Iterator[tuple[CapturedQuestion | None, tuple[Unjudged, ...]]]:
    line = next(one for one in rank.lines if one.step == step)
    tensors = rank.tensors(step)
    for read in (
        read_layers(rank, step, tensors),
        read_updates(rank, line, tensors),
    ):
        yield None, read.unjudged
        for question in read.questions:
            yield question, ()


@in_default_mode
@np.errstate(all="ignore")
def _judged(
    question: CapturedQuestion, searched: dict[tuple[str, ...], list[dict[str, Any]]] | None
) -> list[Judgement]:
    """`searched`: the causes that were found before, by op; None: causes are not asked for."""
    asked = (question.op, question.inputs, question.outputs, question.params, question.direction)
    problem, outputs = one_kernel(*asked)
    fits = {name: fit_to_truth(problem, name, got) for name, got in outputs.items()}
    known = {name: one for name, one in fits.items() if one is not None}
    cause: dict[str, Any] = {}
    if searched is not None and any(not one.ordinary for one in known.values()):
        before = searched.setdefault((question.op, question.direction, question.type), [])
        if question.own or len(before) < _SEARCHES or len({one["cause"] for one in before}) > 1:
            cause = _explained(problem, outputs)
            before.append(cause)
        else:
            cause = {**before[0], "summary": ""}
    judged = [
        _judgement(question, name, one, _size(problem, name, outputs[name], one), cause)
        for name, one in known.items()
    ]
    if question.place.stage == "update" and any(_guessed(one) for one in judged):
        format = problem.format
        if format.p < formats.get("float32").p:
            raise ValueError(
                f"it errs by more than one rounding to {format.name} makes, as operations do that "
                "each round to it, and for these no bound is proven"
            )
    return judged


def _guessed(one: Judgement) -> bool:
    """Whether it breaks its bound, and nothing says why."""
    return one.wrong and one.confidence not in ("proven", "matched")


def _explained(problem: Problem, outputs: dict[str, Array]) -> dict[str, Any]:
    said = explain_kernel(problem, outputs)
    details = dict(said.candidates[0].details) if said.cause else {}
    return {
        "cause": said.cause,
        "confidence": said.confidence,
        "details": details,
        "summary": said.summary,
    }


def _judgement(
    question: CapturedQuestion, output: str, fit: Fit, size: _Size, cause: dict[str, Any]
) -> Judgement:
    of_output = {} if fit.ordinary else cause
    index = (fit.record.get("worst") or {}).get("index") or [0]
    worst = question.part(int(index[0])) if question.parts else question.place.name
    of_weight = question.place.stage == "backward" and output[1:] in _WEIGHTS
    unexplained = of_weight and of_output.get("confidence") not in ("proven", "matched")
    return Judgement(
        question.place, question.op, question.direction, question.type, output, fit.verdict,
        "unusual" in fit.flags, number(fit.over_bound) or 0.0, fit.over_plain, fit.elements, worst,
        size.bias, fit.ordinary or not unexplained, size.negligible and not question.parts,
        size.gross, of_output.get("cause") in question.own and not fit.ordinary, **of_output,
    )  # fmt: skip


@dataclass(frozen=True)
class _Size:
    """How far off an output is, beside its bound."""

    bias: float
    negligible: bool
    gross: bool


def _size(problem: Problem, output: str, got: Array, fit: Fit) -> _Size:
    exact = np.asarray(problem.truth.reference[output])
    format = problem.format_of(output)
    off = np.abs(to_float64(got) - exact)
    beyond = off[~(off <= problem.truth.bound[output])]
    largest = float(np.max(np.abs(exact), initial=0.0))
    negligible = beyond.size > 0 and float(np.max(beyond)) <= format.u * largest < math.inf
    half = 2.0 ** (format.p / 2)
    apart = float(np.linalg.norm(off)) * half > float(np.linalg.norm(exact))
    gross = bool(apart or (number(fit.over_bound) or 0.0) > half)
    return _Size(_bias(problem, output, got), negligible, gross)


def _bias(problem: Problem, output: str, got: Array) -> float:
    """Mean of the signed errors, in floats, by its own standard deviation; 0 of a few."""
    reference = problem.truth.reference[output]
    signed = steps(got.reshape(-1), reference.reshape(-1))
    signed = signed[np.abs(signed) < 2.0**31]
    signed = signed[signed != 0.0]
    if signed.size < _FEW:
        return 0.0
    spread = math.sqrt(float(np.mean(np.square(signed))))
    return float(np.mean(signed)) * math.sqrt(signed.size) / spread
