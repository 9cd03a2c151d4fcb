"""The facts about each kernel that an answer states, read from an explanation's record."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from refkernels.records.codec import number
from refkernels.records.words import INSIDE, OR, SOUND, VERDICTS
from refkernels.reporting.words.catalogues import by_language
from refkernels.reporting.words.causes import CAUSES
from refkernels.reporting.words.model_names import model_name
from refkernels.reporting.words.numerals import figure, ratio, ulps
from refkernels.target_names import framework_of

WORDS = by_language("answer")
Record = Mapping[str, Any]
_BRACKETS = r"\s*(?:\([^()]*\{[^()]*\)|（[^（）]*\{[^（）]*）|= \{[^}]*\})"
_UNDECIDED = 3  # most undecided causes that are listed
_UNCERTIFIED = "uncertified"


def show(value: Any) -> str:
    """A figure in its printed form."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return figure(number(value))


def show_ratio(value: Any) -> str:
    """A figure that is compared with 1."""
    return ratio(number(value))


@dataclass(frozen=True, eq=False)
class ExplainedKernel:
    """One kernel of an explanation. `name` is "" for a single kernel without one."""

    name: str
    record: Record

    @cached_property
    def output(self) -> str:
        """The deciding output: the one with the worst verdict, then the largest error / bound. If
        none is wrong, the first with the kernel's verdict, so that kernels are compared by the same
        output."""
        if self.fine:
            names = (
                name for name, record in self.outputs.items() if record["verdict"] == self.verdict
            )
            return next(names)
        return min(self.outputs, key=lambda name: self._badness(self.outputs[name]))

    @property
    def outputs(self) -> Mapping[str, Record]:
        records: Mapping[str, Record] = self.record["evidence"]["outputs"]
        return records

    @property
    def measured(self) -> Record:
        """The measurement of the deciding output."""
        return self.outputs[self.output]

    @property
    def verdict(self) -> str:
        return str(self.record["verdict"])

    @property
    def unusual(self) -> bool:
        return "unusual" in self.record["flags"] and self.verdict in SOUND

    @property
    def avoidable(self) -> Record | None:
        """The form that avoids the errors of the deciding output, where there is one."""
        better: Record | None = self.measured["bound"].get("better")
        return better if self.verdict in INSIDE else None

    @property
    def fine(self) -> bool:
        """Whether there is nothing but ordinary rounding."""
        unavoidable = "avoidable" not in self.record["flags"]
        return self.verdict in SOUND and not self.unusual and unavoidable

    @property
    def explained_by_rounding(self) -> bool:
        """Whether rounding explains the output, be it in a form that another betters."""
        return self.fine or self.avoidable is not None

    @property
    def none_certified(self) -> bool:
        """Whether no element is certified, so that there is nothing to explain."""
        return self.verdict == _UNCERTIFIED

    @property
    def unsure(self) -> bool:
        """Whether the verdict says all that is known: no cause is looked for or missing."""
        undecided = self.verdict == "ill_conditioned" and self.avoidable is None
        return undecided or self.verdict in ("range_limited", _UNCERTIFIED)

    @property
    def cause(self) -> str | None:
        return self.record["cause"]

    @property
    def tried(self) -> int:
        return int(self.record["evidence"]["tried"])

    @property
    def seconds(self) -> float:
        return float(self.record["evidence"].get("seconds", 0.0))

    @property
    def candidates(self) -> list[Record]:
        return list(self.record["candidates"])

    @cached_property
    def best(self) -> Record | None:
        """The candidate that the answer names."""
        named = [candidate for candidate in self.candidates if candidate["confidence"] is not None]
        return self._own_model(self._alike(named))

    @cached_property
    def models(self) -> list[str]:
        """The named candidate's model, and every other model that fits as well."""
        best = self.best
        if best is None or not best["model"]:
            return []
        named = [
            str(candidate["model"])
            for candidate in self._alike(self.candidates)
            if candidate["model"]
        ]
        return list(dict.fromkeys([str(best["model"]), *named]))

    def _alike(self, candidates: list[Record]) -> list[Record]:
        """The first candidate of the cause, and all candidates that fit the same output as well."""
        best = next(
            (candidate for candidate in candidates if candidate["cause"] == self.cause), None
        )
        if best is None:
            return []
        alike = ("cause", "output", "confidence", "equal")
        return [
            candidate
            for candidate in candidates
            if all(candidate[key] == best[key] for key in alike)
        ]

    @cached_property
    def rivals(self) -> list[Record]:
        """Other causes that fit as well as the named one: one candidate for each."""
        best = self.best
        if best is None:
            return []
        by_cause: dict[str, Record] = {}
        for candidate in self.candidates:
            alike = all(candidate[key] == best[key] for key in ("output", "confidence", "equal"))
            if alike and candidate["cause"] != best["cause"]:
                by_cause.setdefault(candidate["cause"], candidate)
        return list(by_cause.values())

    @cached_property
    def reasons(self) -> list[Record]:
        """Other possible reasons for a named factor: one candidate for each cause."""
        best = self.best
        if best is None or best["cause"] != "scale_factor":
            return []
        by_cause: dict[str, Record] = {}
        for candidate in self.candidates:
            fits = candidate["confidence"] is not None and candidate["output"] == best["output"]
            if fits and candidate["cause"] in best["survivors"]:
                by_cause.setdefault(candidate["cause"], candidate)
        return [candidate for cause, candidate in by_cause.items() if cause != best["cause"]]

    @cached_property
    def undecided(self) -> list[list[Record]]:
        """The candidates that also fit a right output of few elements, by cause, the kernel's own
        model first."""
        if self.best is not None or not self.fine:
            return []
        by_cause: dict[str, list[Record]] = {}
        for candidate in self.candidates:
            fits = candidate["confidence"] is not None and candidate["bits"] is not None
            if fits and candidate["output"] == self.output:
                by_cause.setdefault(candidate["cause"], []).append(candidate)
        groups = [
            sorted(alike, key=lambda candidate: candidate is not self._own_model(alike))
            for alike in by_cause.values()
        ]
        return groups[:_UNDECIDED]

    @cached_property
    def model(self) -> Record | None:
        """The model that reproduces every bit, preferably of the deciding output. A model with a
        fault counts only if it is named."""
        models = [
            candidate
            for candidate in self.candidates
            if candidate["model"]
            and (
                candidate["cause"] == "summation_order"
                or candidate["confidence"] in ("proven", "matched")
                or (candidate["confidence"] and candidate["cause"] == self.cause)
            )
        ]
        whole = [candidate for candidate in models if candidate["equal"] == candidate["elements"]]
        deciding = [candidate for candidate in whole if candidate["output"] == self.output]
        return self._own_model(deciding or whole)

    def _own_model(self, candidates: list[Record]) -> Record | None:
        """The kernel's own model if it is among them, else the first: several may give the same
        bits."""
        framework = framework_of(self.name)
        own_models = [
            candidate
            for candidate in candidates
            if framework and str(candidate["model"]).startswith(framework)
        ]
        return next(iter(own_models or candidates), None)

    @property
    def ruled_out(self) -> list[Record]:
        return [candidate for candidate in self.candidates if candidate["confidence"] is None]

    @property
    def bound(self) -> Any:
        return self.measured["bound"]["max_ratio"]

    @property
    def largest_bound(self) -> Any:
        """error / bound, the largest of all outputs."""
        ratios = [output["bound"]["max_ratio"] for output in self.outputs.values()]
        return max(ratios, key=lambda ratio: number(ratio) or 0.0)

    @property
    def plain(self) -> Any:
        return self.measured["plain"]["ratio"]

    @property
    def ulp(self) -> Any:
        return (self.measured["ulp"] or {}).get("max")

    @property
    def format(self) -> str:
        return str(self.measured.get("format", self.record["format"]))

    def ulps(self, lang: str) -> str:
        """The largest error in ulp; in words if no digit is right."""
        return ulps(number(self.ulp), self.format, lang)

    @property
    def condition(self) -> float | None:
        """The condition number at the worst element, None where it is unknown or infinite."""
        value = number(self.measured["condition"]["at_worst"])
        return value if value is not None and math.isfinite(value) else None

    @property
    def place(self) -> str | None:
        worst = self.measured["worst"]
        return None if worst is None else place_of(self.output, worst["index"])

    @staticmethod
    def _badness(output: Record) -> tuple[float, bool, float]:
        size = number(output["bound"]["max_ratio"]) or 0.0
        worst_first = -(math.inf if math.isnan(size) else size)
        return (VERDICTS.index(output["verdict"]), "better" not in output["bound"], worst_first)


def kernels_of(answer: Record) -> list[ExplainedKernel]:
    """Every kernel of an explanation."""
    if answer["kernels"]:
        return [ExplainedKernel(name, record) for name, record in answer["kernels"].items()]
    return [ExplainedKernel("", answer)]


def place_of(output: str, index: list[int]) -> str:
    """y[6, 215]; only y if it has no axes."""
    return f"{output}[{', '.join(map(str, index))}]" if index else output


def says(candidate: Record, lang: str, among: bool = False) -> str:
    """The sentence about the cause, with the candidate's numbers; `among`: other models fit
    equally well."""
    cause, model = candidate["cause"], candidate.get("model")
    if model and cause == "summation_order":
        key = "order" if "order" in candidate["details"] else "run_among" if among else "run"
        return WORDS[lang](key, model=model_name(model, lang))
    if cause not in CAUSES:
        return WORDS[lang]("run", model=model_name(model or cause, lang))
    details = candidate["details"]
    if "solved" in details:
        details = {**details, details["solved"]: _value_or_interval(details, lang)}
    details = {
        key: value.replace(OR, WORDS[lang]["or_text"]) if isinstance(value, str) else value
        for key, value in details.items()
    }
    text = _filled(CAUSES[cause][lang], details)
    if "block" in details:
        text = WORDS[lang]("in_block", says=text, block=details["block"])
    if details.get("with") in CAUSES:
        second = _filled(CAUSES[details["with"]][lang], details.get("with_details", details))
        text = WORDS[lang]("and_also", says=text, other=second)
    if "left" in details:
        text = WORDS[lang]("and_more", says=text, left=ratio(details["left"]))
    if "computed_in" in details:
        text = WORDS[lang]("computed_in", says=text, format=details["computed_in"])
    if "ties" in details:
        text = WORDS[lang]("ties_" + details["ties"], says=text)
    return text


def _value_or_interval(details: Record, lang: str) -> str:
    """A number that was solved for: its name, where the whole interval rounds to it; the name and
    the interval; or the interval alone, where several values or none have a name."""
    value, ends = details[details["solved"]], [number(end) or 0.0 for end in details["interval"]]
    digits = len(f"{Decimal(str(value)).normalize():e}".split("e")[0].strip("-").replace(".", ""))
    named = not {"several", "fitted"} & details.keys() or f"{ends[0]:g}" == f"{ends[1]:g}"
    if named and {float(f"{end:.{digits - 1}e}") for end in ends} == {value}:
        return str(value)
    shown = 6 if f"{ends[0]:g}" != f"{ends[1]:g}" else 12  # digits
    low, high = (f"{end:.{shown}g}" for end in ends)
    key = "at_most" if math.isinf(ends[0]) else "at_least" if math.isinf(ends[1]) else "interval"
    return WORDS[lang](f"{key}_named" if named else key, value=value, low=low, high=high)


def advice(cause: str, lang: str) -> str:
    """The advice on a cause."""
    entry = CAUSES.get(cause)
    return entry["todo"][lang] if entry else WORDS[lang]["todo:unexplained"]


class _Unknown:
    """Stands for a number on which the cause's hypotheses differ."""

    def __repr__(self) -> str:
        return "?"

    def __format__(self, specification: str) -> str:
        return "?"


def _filled(text: str, details: Mapping[str, Any]) -> str:
    """The text with its numbers; brackets without their numbers are left out."""
    values = {key: value for key, value in details.items() if value != ""}

    def if_complete(match: re.Match[str]) -> str:
        names = re.findall(r"\{(\w+)", match[0])
        return match[0] if set(names) <= set(values) else ""

    return re.sub(_BRACKETS, if_complete, text).format_map(defaultdict(_Unknown, values))
