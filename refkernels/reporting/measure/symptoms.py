"""Symptoms, which group findings so that one cause takes one line, and the card of each target.

The findings of one op on one target in one format are one symptom for each kind of input and
verdict. A symptom is left out if a more ordinary input shows one that is at least as bad. If
several of an op's options were explained, each explanation holds for its own option. Symptoms that
differ in format are joined, and so are those of several ops with one known cause or signature. A
card begins with ordinary inputs, and among these with what is most wrong (`inputs.loss`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from refkernels.reporting.answer.facts import says
from refkernels.reporting.measure import signatures
from refkernels.reporting.measure.headline import reason_of
from refkernels.reporting.measure.ids import finding_id
from refkernels.reporting.measure.inputs import (
    Input,
    Measured,
    concerned,
    distinguishing_digits,
    example_of,
    input_of,
    level_of,
    place_of,
    shown_inputs,
)
from refkernels.reporting.measure.study import Measurement, Study, known_cause
from refkernels.reporting.reading import Record
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.causes import by_design
from refkernels.reporting.words.escaping import clipped
from refkernels.reporting.words.forms import avoidable
from refkernels.reporting.words.numerals import digits, figure, share
from refkernels.reporting.words.report import counted, listed, some_of
from refkernels.reporting.words.vocabulary import (
    UNUSUAL,
    WIDE,
    Verdict,
    rank_of_direction,
    rank_of_dtype,
    verdict,
)
from refkernels.target_names import framework_of

MOST_LINES = 5  # of a card, before it is unfolded
MOST_EXPLAINED = 8  # symptoms of a target
_ROUNDING = verdict("rounding").rank


@dataclass(frozen=True, eq=False)
class Symptom:
    """Measurements that may have one cause: of one target, one kind of input, one verdict."""

    measurements: tuple[Measurement, ...]
    input: Input
    loss: float  # how wrong it is (`inputs.Measured`)
    explanation: Record | None  # the record of what was found on one of its cases
    float32: int = 0  # how many measurements have float64 answers that are float32 numbers
    covered: tuple[Measurement, ...] = ()  # those of its op and format that it stands for too
    open: tuple[Measurement, ...] = ()  # an example of each option that its cause may not explain

    @cached_property
    def example(self) -> Measurement:
        """The measurement to show, an explained one if there is one."""
        if self.explanation is not None:
            explained = [m for m in self.measurements if explains(self.explanation, m)]
            return example_of(explained or self.measurements)
        return example_of(self.measurements)

    @property
    def subject(self) -> str:
        return self.example.subject

    @property
    def verdict(self) -> Verdict:
        """The verdict, or UNUSUAL."""
        return level_of(self.example)

    @property
    def ops(self) -> list[str]:
        """The ops that show it: the example's, then the others, most measurements first."""
        shown = Counter(m.op for m in self.measurements)
        return sorted(shown, key=lambda op: (op != self.example.op, -shown[op], op))

    @property
    def directions(self) -> list[str]:
        return sorted({m.direction for m in self.measurements}, key=rank_of_direction)

    @property
    def dtypes(self) -> list[str]:
        """The formats, the example's first."""
        first = self.example.dtype
        return sorted(
            {m.dtype for m in self.measurements},
            key=lambda name: (name != first, rank_of_dtype(name)),
        )

    @property
    def cause(self) -> str | None:
        """The stable identifier of the cause that was found, or whose signature it has."""
        return known_cause(self.explanation) or (signatures.CAUSE if self.float32 else None)

    @property
    def kind(self) -> str:
        """report, formula, design, inside or edge."""
        if self.input is Input.EDGE:
            return "edge"
        if self.example.record.get("formula"):
            return "formula"
        if self.cause is not None and by_design(self.cause, framework_of(self.subject)):
            return "design"
        return "inside" if self.verdict == UNUSUAL else "report"

    @property
    def finding(self) -> str:
        """The id of the finding of its example."""
        return finding_id(self.example)

    @property
    def badness(self) -> tuple[object, ...]:
        """Sort key: ordinary inputs first, wide formats first, what is beyond the bound before what
        is not, then what has lost most."""
        wide = self.example.dtype in WIDE
        inside = self.verdict == UNUSUAL
        return (self.input, not wide, inside, -self.loss, self.finding)

    def what(self, words: Texts, most: int = 8) -> str:
        """`layernorm and rms_norm forward, float64`."""
        passes, dtypes = (listed(words, names) for names in (self.directions, self.dtypes))
        ops = some_of(words, self.ops, most)
        return words("op_pass_format", ops=ops, passes=passes, dtypes=dtypes)

    def because(self, words: Texts, short: bool = False) -> str:
        """The cause in words, or with `short` by its identifier, with its confidence; or the
        statement that none was found; "" if none was looked for."""
        says_cause = known_cause(self.explanation) or not self.float32
        text = short_cause if short else cause_text
        parts = [text(self.explanation, words, self.example)] if says_cause else []
        if self.float32:
            measurements = counted(words, "measurement", self.float32)
            parts.append(words("float32_answers", measurements=measurements))
        return words["semicolon"].join(filter(None, parts))

    def size(self, words: Texts, short: str = "") -> str:
        """How many elements are affected, and how wrong they are; `short`="short:" uses fewer
        words."""
        m = self.example
        part, whole = concerned(m)
        affected = share(part, whole)
        if m.tally("special_value_mismatches"):
            return words("special", share=affected)
        if self.verdict.name == "uncertified":
            return words["uncertified"]
        mean = m.number("ulp", "mean")
        right = None if mean is None else digits(mean, m.dtype)
        parts = []
        if violated := m.record.get("invariants_violated"):
            names = [clipped(str(name), 60) for name in violated]
            parts.append(words("violates", names=listed(words, names)))
        elif self.verdict == UNUSUAL:
            if "unusual" in m.flags:
                plain = figure(m.number("plain", "ratio"))
                parts.append(words("times_plain", plain=plain))
            parts += filter(None, [avoidable(m.record, m.dtype, words.lang)])
        else:
            whole_array = short and part == whole
            parts.append(words("all_elements" if whole_array else "elements", share=affected))
        if right is not None and right[0] < right[1]:
            key = "digits" if right[0] else "no_digit"
            parts.append(words(short + key, right=right[0], whole=right[1]))
        return words["comma"].join(parts)

    def shown(self, words: Texts) -> str:
        """`x = -1.839 gives 0.0262, exact 0.0236`; "" if the record has no element."""
        worst = self.example.worst
        got, exact = ((worst.get(side) or {}).get("decimal") for side in ("got", "exact"))
        if got is None or exact is None:
            return ""
        answer, right = distinguishing_digits(str(got), str(exact))
        inputs = shown_inputs(self.example)
        sentence = words["gives" if inputs else "gives_bare"]
        return sentence.format(inputs=inputs, got=answer, exact=right)


@dataclass(frozen=True, eq=False)
class Card:
    """One target: its symptoms, the most important first."""

    subject: str
    version: str
    asked: int
    fine: int  # of them show rounding at most
    unanswered: list[Measurement]
    lines: list[Symptom]  # not of edge cases, the most important first
    edges: list[Symptom]
    formula: bool = False  # composed of a framework's ops, by us

    def head(self, words: Texts) -> list[str]:
        """What gave no answer, and why; or else that nothing is to be told."""
        if self.unanswered:
            told = {
                "n": f"{len(self.unanswered):,}",
                "measurements": counted(words, "measurement", self.asked),
                "reason": reason_of(self.unanswered, words),
            }
            return [words("card_unanswered", **told)]
        return [] if self.lines else [words["card_fine"]]

    @property
    def badness(self) -> tuple[object, ...]:
        """Sort key: its most important symptom's."""
        return self.lines[0].badness[:-1] if self.lines else (Input.EDGE,)

    @property
    def first(self) -> list[Symptom]:
        """The symptoms shown unfolded."""
        return self.lines[:MOST_LINES]

    @property
    def further(self) -> list[Symptom]:
        return self.lines[MOST_LINES:]


def cards(study: Study, all_symptoms: list[Symptom] | None = None) -> list[Card]:
    """A card for each target that answered: kernels before formulas of ours, and the target with
    the most important symptom first. `all_symptoms`: the study's, if they are known."""
    groups: dict[str, list[Symptom]] = defaultdict(list)
    for symptom in symptoms(study) if all_symptoms is None else all_symptoms:
        groups[symptom.subject].append(symptom)
    unsorted = []
    for subject in study.subjects:
        measured = [m for m in study.measurements if m.subject == subject]
        unanswered = [m for m in study.unanswered if m.subject == subject]
        if measured:
            lines = groups[subject]
            unsorted.append(
                Card(
                    subject,
                    str(measured[0].record.get("version") or ""),
                    len(measured) + len(unanswered),
                    sum(m.verdict.rank >= _ROUNDING for m in measured),
                    unanswered,
                    [symptom for symptom in lines if symptom.input is not Input.EDGE],
                    [symptom for symptom in lines if symptom.input is Input.EDGE],
                    bool(measured[0].record.get("formula")),
                )
            )
    return sorted(unsorted, key=lambda card: (card.formula, card.badness, card.subject))


def worth_explaining(study: Study, every: bool = False) -> list[Measurement]:
    """The examples of the lines on cards that are not explained yet, or else of the options that
    these lines leave open, up to each target's limit of explanations: of kernels, or of formulas
    of ours where no kernel answered. With `every`, of all lines."""
    if every:
        return _unexplained(symptoms(study))
    explained: dict[str, int] = defaultdict(int)
    for subject, _ in study.explanations:
        explained[subject] += 1
    examples = []
    every_card = cards(study)
    for card in [card for card in every_card if not card.formula] or every_card:
        room = MOST_EXPLAINED - explained[card.subject]
        examples += _unexplained(card.first)[: max(0, room)]
    return examples


def _unexplained(listed_symptoms: list[Symptom]) -> list[Measurement]:
    missing = [symptom.example for symptom in listed_symptoms if symptom.explanation is None]
    return missing or [m for symptom in listed_symptoms for m in symptom.open]


def beyond_rounding(m: Measurement) -> bool:
    """Whether a measurement is a symptom of anything: worse than rounding, or unusual."""
    return level_of(m).rank < _ROUNDING


def symptoms(study: Study) -> list[Symptom]:
    """All symptoms beyond rounding, the most important first."""
    groups: dict[tuple[str, str, str], list[Measurement]] = defaultdict(list)
    for m in study.measurements:
        if beyond_rounding(m):
            groups[m.subject, m.op, m.dtype].append(m)
    measured = Measured(study)
    alone = [symptom for group in groups.values() for symptom in _of_one_op(group, study, measured)]
    together: dict[tuple[object, ...], list[Symptom]] = defaultdict(list)
    for symptom in alone:
        cause, unexplained = symptom.cause, symptom.explanation is None
        about = ("cause", cause) if cause else ("op", symptom.ops[0], unexplained)
        place = (symptom.subject, symptom.input, symptom.verdict.name, *about)
        together[place].append(symptom)
    joined = []
    for alike in together.values():
        first = min(
            alike, key=lambda symptom: (known_cause(symptom.explanation) is None, symptom.badness)
        )
        members = (
            *first.measurements,
            *(m for symptom in alike if symptom is not first for m in symptom.measurements),
        )
        joined.append(
            replace(
                first,
                measurements=members,
                loss=max(symptom.loss for symptom in alike),
                float32=sum(symptom.float32 for symptom in alike),
                covered=tuple(m for symptom in alike for m in symptom.covered),
                open=tuple(m for symptom in alike for m in symptom.open),
            )
        )
    return sorted(joined, key=lambda symptom: symptom.badness)


def _of_one_op(
    measurements: list[Measurement], study: Study, measured: Measured
) -> Iterator[Symptom]:
    """The symptoms of one op on one target in one format. A symptom is left out if a more ordinary
    input shows one that is at least as bad; but outputs with a signature do not cover those without
    it that have a known cause."""
    float32 = signatures.float32_places(measurements)
    parts: dict[tuple[Input, float, bool, str], list[Measurement]] = defaultdict(list)
    for m in measurements:
        level = level_of(m)
        parts[input_of(m), level.rank, place_of(m) not in float32, level.name].append(m)
    shown_parts: list[tuple[Input, float, bool, list[Measurement], list[Measurement]]] = []
    for (kind, rank, unsigned, _), part in sorted(parts.items(), key=lambda item: item[0][:3]):
        caused = unsigned and any(known_cause(study.explanation_of(m)) for m in part)
        covering = next(
            (covered for _, shown_rank, shown_unsigned, _, covered in shown_parts
             if shown_rank <= rank and (shown_unsigned or not caused)), None,
        )  # fmt: skip
        if covering is None:
            shown_parts.append((kind, rank, unsigned, part, list(part)))
        else:
            covering += part
    for kind, _, unsigned, part, covered in shown_parts:
        for members, explanation, unexplained in _by_cause(part, study):
            apart = set(part) - set(members)
            stands_for = [m for m in covered if m not in apart]
            alike = [m for m in stands_for if (input_of(m) is Input.EDGE) is (kind is Input.EDGE)]
            yield Symptom(
                tuple(members),
                kind,
                measured.loss(alike),
                explanation,
                0 if unsigned else len(members),
                tuple(stands_for),
                tuple(unexplained),
            )


def _by_cause(
    part: list[Measurement], study: Study
) -> Iterator[tuple[list[Measurement], Record | None, list[Measurement]]]:
    """The measurements by the cause that was found for their options, with the explanation. Options
    without an explanation join the first known cause. It may hide another one, so an example of
    each of these options comes with it."""
    by_options: dict[object, list[Measurement]] = defaultdict(list)
    for m in part:
        by_options[_options(m)].append(m)
    explanation_of = {
        options: next(filter(None, map(study.explanation_of, group)), None)
        for options, group in by_options.items()
    }
    explanations = sorted(
        filter(None, explanation_of.values()), key=lambda record: known_cause(record) is None
    )
    groups: dict[str | None, list[Measurement]] = {
        known_cause(record): [] for record in explanations
    }
    first = next(iter(groups), None)
    for options, group in by_options.items():
        record = explanation_of[options]
        groups.setdefault(first if record is None else known_cause(record), []).extend(group)
    for cause, caused in groups.items():
        explanation = next(
            (record for record in explanations if known_cause(record) == cause), None
        )
        hidden = [by_options[option] for option, record in explanation_of.items() if record is None]
        open_here = hidden if cause is not None and cause == first else []
        yield caused, explanation, [example_of(group) for group in open_here]


def _options(m: Measurement) -> frozenset[object]:
    """The names of a case's params, with the values of words and flags: cases that differ only in
    numbers have the same options."""
    params = (m.record["case"].get("params") or {}).items()
    return frozenset(
        (name, value if isinstance(value, str | bool) else None) for name, value in params
    )


def explains(record: Record, m: Measurement) -> bool:
    """Whether an explanation is about this measurement's case."""
    return bool(
        (record["op"], record["direction"], record["dtype"], record["case"])
        == (m.op, m.direction, m.dtype, m.case)
    )


def cause_text(record: Record | None, words: Texts, of: Measurement | None = None) -> str:
    """What an explanation found, in words; "" if there is none. `of`: the measurement that it
    explains; where rounding alone crosses a limit, no cause is needed."""
    if record is None or record.get("status") != "ok":
        return ""
    cause = known_cause(record)
    if cause is None:
        if of is not None and _crosses_by_rounding(of):
            return words("crosses", ulp=figure(of.ulp_max))
        return words("no_cause", tried=f"{int(record.get('tried') or 0):,}")
    confidence = str(record.get("confidence") or "")
    key = "maybe" if confidence == "consistent" else "it"
    sure = words.get(f"confidence:{confidence}", confidence)
    return words(key, says=_sentence(record, cause, words.lang), confidence=sure)


def _crosses_by_rounding(m: Measurement) -> bool:
    """Whether an output violates an invariant by no more than rounding."""
    over = m.number("bound", "max_ratio")
    inside = over is not None and over <= 1.0 and not m.unusual
    return inside and m.verdict.name == "invariant_violated" and m.ulp_max is not None


def short_cause(record: Record | None, words: Texts, of: Measurement | None = None) -> str:
    """The same by the cause's identifier."""
    cause = known_cause(record) if record and record.get("status") == "ok" else None
    if record is None or cause is None:
        return cause_text(record, words, of)
    confidence = str(record.get("confidence") or "")
    sure = words.get(f"short:{confidence}") or words.get(f"confidence:{confidence}", confidence)
    return words("short:it", cause=cause, confidence=sure)


def _sentence(record: Mapping[str, Any], cause: str, lang: str) -> str:
    """The cause in words with its numbers; its identifier if a record lacks these."""
    candidate = {
        "cause": cause,
        "model": record.get("model"),
        "details": record.get("details") or {},
    }
    try:
        return clipped(says(candidate, lang, bool(record.get("among"))), 400)
    except (LookupError, ValueError, TypeError, AttributeError):
        return cause
