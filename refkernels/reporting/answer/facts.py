"""What an answer says of each kernel, read from an explanation as `to_dict` gives it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from refkernels.records.codec import number
from refkernels.records.words import VERDICTS
from refkernels.reporting.answer.words import WORDS
from refkernels.reporting.words.causes import CAUSES
from refkernels.reporting.words.model_names import model_name
from refkernels.reporting.words.numerals import figure, ratio, ulps
from refkernels.seat_names import framework_of

Record = Mapping[str, Any]
_BRACKETS = r"\s*(?:\([^()]*\{[^()]*\)|（[^（）]*\{[^（）]*）|= \{[^}]*\})"
_UNDECIDED = 3  # causes that are told
_FINE = ("rounding", "correctly_rounded")


def show(value: Any) -> str:
    """A figure as it is printed."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return figure(number(value))


def show_ratio(value: Any) -> str:
    """A figure that is compared with 1."""
    return ratio(number(value))


@dataclass(frozen=True, eq=False)
class ExplainedKernel:
    """One kernel of an explanation. `name` is "" where it is alone and has none."""

    name: str
    record: Record

    @cached_property
    def output(self) -> str:
        """The output that decides: the worst verdict, then the largest error / bound. Where nothing
        is wrong, the first one with that verdict, so that kernels are compared by the same one."""
        if self.fine:
            found = (name for name, one in self.outputs.items() if one["verdict"] == self.verdict)
            return next(found)
        return min(self.outputs, key=lambda name: self._badness(self.outputs[name]))

    @property
    def outputs(self) -> Mapping[str, Record]:
        found: Mapping[str, Record] = self.record["evidence"]["outputs"]
        return found

    @property
    def measured(self) -> Record:
        """What judge says of that output."""
        return self.outputs[self.output]

    @property
    def verdict(self) -> str:
        return str(self.record["verdict"])

    @property
    def unusual(self) -> bool:
        return "unusual" in self.record["flags"] and self.verdict in _FINE

    @property
    def fine(self) -> bool:
        """Nothing but rounding, and no more of it than is usual."""
        return self.verdict in _FINE and not self.unusual

    @property
    def cause(self) -> str | None:
        return self.record["cause"]

    @property
    def tried(self) -> int:
        return int(self.record["evidence"]["tried"])

    @property
    def candidates(self) -> list[Record]:
        return list(self.record["candidates"])

    @cached_property
    def best(self) -> Record | None:
        """The candidate that is named."""
        named = [one for one in self.candidates if one["confidence"] is not None]
        return self._own(self._alike(named))

    @cached_property
    def models(self) -> list[str]:
        """Every model that fits as the named candidate does, which comes first."""
        best = self.best
        if best is None or not best["model"]:
            return []
        named = [str(one["model"]) for one in self._alike(self.candidates) if one["model"]]
        return list(dict.fromkeys([str(best["model"]), *named]))

    def _alike(self, candidates: list[Record]) -> list[Record]:
        """The first candidate of the cause, and all that fit the same output as well."""
        best = next((one for one in candidates if one["cause"] == self.cause), None)
        if best is None:
            return []
        alike = ("cause", "output", "confidence", "equal")
        return [one for one in candidates if all(one[key] == best[key] for key in alike)]

    @cached_property
    def rivals(self) -> list[Record]:
        """Other causes that fit as well as the one named: one candidate of each."""
        best = self.best
        if best is None:
            return []
        found: dict[str, Record] = {}
        for one in self.candidates:
            alike = all(one[key] == best[key] for key in ("output", "confidence", "equal"))
            if alike and one["cause"] != best["cause"]:
                found.setdefault(one["cause"], one)
        return list(found.values())

    @cached_property
    def undecided(self) -> list[list[Record]]:
        """What fits a right output, where few elements cannot tell: the candidates of each cause,
        the kernel's own model first."""
        if self.best is not None or not self.fine:
            return []
        found: dict[str, list[Record]] = {}
        for one in self.candidates:
            fits = one["confidence"] is not None and one["bits"] is not None
            if fits and one["output"] == self.output:
                found.setdefault(one["cause"], []).append(one)
        several = [
            sorted(alike, key=lambda one: one is not self._own(alike)) for alike in found.values()
        ]
        return several[:_UNDECIDED]

    @cached_property
    def model(self) -> Record | None:
        """The model with the most bits of the deciding output, if it has them all; one that is to
        blame for something only where it is named."""
        models = [
            one
            for one in self.candidates
            if one["model"]
            and (
                one["cause"] == "summation_order"
                or one["confidence"] in ("proven", "matched")
                or (one["confidence"] and one["cause"] == self.cause)
            )
        ]
        whole = [one for one in models if one["equal"] == one["elements"]]
        mine = [one for one in whole if one["output"] == self.output]
        return self._own(mine or whole)

    def _own(self, candidates: list[Record]) -> Record | None:
        """The first one, but rather the kernel's own model: several may give the same bits."""
        framework = framework_of(self.name)
        own = [one for one in candidates if framework and str(one["model"]).startswith(framework)]
        return next(iter(own or candidates), None)

    @property
    def ruled_out(self) -> list[Record]:
        return [one for one in self.candidates if one["confidence"] is None]

    @property
    def bound(self) -> Any:
        return self.measured["bound"]["max_ratio"]

    @property
    def largest_bound(self) -> Any:
        """error / bound, the largest of all outputs."""
        ratios = [one["bound"]["max_ratio"] for one in self.outputs.values()]
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
        """The largest error in ulp, in words where no digit is right."""
        return ulps(number(self.ulp), self.format, lang)

    @property
    def condition(self) -> float | None:
        """The condition number at the worst element, None where it is not known or infinite."""
        value = number(self.measured["condition"]["at_worst"])
        return value if value is not None and math.isfinite(value) else None

    @property
    def place(self) -> str | None:
        worst = self.measured["worst"]
        return None if worst is None else place_of(self.output, worst["index"])

    @staticmethod
    def _badness(one: Record) -> tuple[float, float]:
        size = number(one["bound"]["max_ratio"]) or 0.0
        return (VERDICTS.index(one["verdict"]), -(math.inf if math.isnan(size) else size))


def kernels_of(answer: Record) -> list[ExplainedKernel]:
    """Every kernel of an explanation."""
    if answer["kernels"]:
        return [ExplainedKernel(name, one) for name, one in answer["kernels"].items()]
    return [ExplainedKernel("", answer)]


def place_of(output: str, index: list[int]) -> str:
    """y[6, 215], and y alone where it has no axes."""
    return f"{output}[{', '.join(map(str, index))}]" if index else output


def says(candidate: Record, lang: str, among: bool = False) -> str:
    """What the cause means, with the candidate's numbers; `among`: other models fit as well."""
    cause, model = candidate["cause"], candidate.get("model")
    if model and cause == "summation_order":
        key = "order" if "order" in candidate["details"] else "run_among" if among else "run"
        return WORDS[lang][key].format(model=model_name(model, lang))
    if cause not in CAUSES:
        return WORDS[lang]["run"].format(model=model_name(model or cause, lang))
    details = candidate["details"]
    if cause == "eps_differs" and "interval" in details:
        low, high = details["interval"]
        told = WORDS[lang]["interval"].format(low=f"{low:g}", high=f"{high:g}")
        details = {**details, "eps": told}
    return _filled(CAUSES[cause].says[lang], details)


def advice(cause: str, lang: str) -> str:
    """What to do about it."""
    known = CAUSES.get(cause)
    return known.todo[lang] if known else WORDS[lang]["todo:unexplained"]


def _filled(text: str, details: Mapping[str, Any]) -> str:
    """The text with its numbers; brackets whose numbers are not there are left out."""
    known = {key: value for key, value in details.items() if value != ""}

    def kept(match: re.Match[str]) -> str:
        names = re.findall(r"\{(\w+)", match[0])
        return match[0] if set(names) <= set(known) else ""

    return re.sub(_BRACKETS, kept, text).format(**known)
