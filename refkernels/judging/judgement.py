"""A Judgement: the verdict on a kernel, its reasons, and what was shown. It is a record, which
`reporting` puts into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from xml.etree import ElementTree

from refkernels.records.codec import storable
from refkernels.records.words import SCHEMA

NOT_JUDGED = "not_judged"
RIGHT, LOWER, LIMITED, WRONG, UNFAIR, NOT_ENOUGH = VERDICTS = (
    "right",
    "lower_precision",
    "range_limited",
    "wrong",
    "unfair",
    "not_enough_shown",
)


@dataclass(frozen=True)
class Reason:
    """Why a verdict is not "right": its `kind`, in the words of `reporting.words.judgement`, the
    challenge that showed it, and figures."""

    kind: str
    challenge: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """The verdict on one kernel of one op, in one direction and dtype.

    score       1 for a right kernel, 0 for an unfair one, else the share of the challenges that it
                answered rightly; None where not enough is shown
    reasons     why, the strongest first; empty for "right"
    families    by name, how many challenges were asked and not declined, and how many of the
                answered ones reject every decoy
    killed      the mutants that these challenges refuse; `alive`: those that they do not refuse
    smallest_error_ulp  by output, the smallest error that would have been seen in some element
    longest_axis        the longest axis of an input that it answered
    declined    what it declined and need not take: inputs, params with values, challenges
    lengths     the only lengths, by letter, and formats, by input, and `shapes` as declared
    leading_axes        the only numbers of them that it takes; empty for all
    widened     of a statistical verdict, the outputs, with the calls that widen their bounds most
    avoidable   an answer whose errors another form of the op avoids: its challenge, and how many
                elements err how much more than which form
    flushes     the last import before its process flushed subnormal numbers, None if it does not
    cause       what `explain` found about a wrong answer, as its record
    time        the median and the least time of some calls, in seconds, and their inputs
    """

    kernel: str
    op: str
    direction: str
    dtype: str
    verdict: str
    seed: int | None = None
    level: str = ""
    reasons: tuple[Reason, ...] = ()
    families: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    score: float | None = None
    killed: tuple[str, ...] = ()
    alive: tuple[str, ...] = ()
    smallest_error_ulp: Mapping[str, float] = field(default_factory=dict)
    longest_axis: int = 0
    calls: int = 0
    declined: tuple[str, ...] = ()
    lengths: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    leading_axes: tuple[int, ...] = ()
    flags: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    avoidable: Mapping[str, Any] | None = None
    flushes: str | None = None
    cause: Mapping[str, Any] | None = None
    time: Mapping[str, Any] | None = None
    task: Mapping[str, Any] | None = None
    why: str = ""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        return self.verdict == RIGHT

    @property
    def challenges(self) -> int:
        """How many challenges were asked."""
        return sum(asked for asked, _ in self.families.values())

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON, from which every view is made."""
        fields = asdict(self)
        families = self.families.items()
        fields["families"] = {n: {"asked": asked, "telling": told} for n, (asked, told) in families}
        fields["mutants"] = {name: fields.pop(name) for name in ("killed", "alive")}
        fields = {k: v for k, v in fields.items() if v or k not in ("task", "why")}
        record = {"schema": SCHEMA, "kind": "judgement", **fields}
        stored: dict[str, Any] = storable(record)
        return stored


def not_judged(kernel: str, op: str | None, why: str, **known: Any) -> Judgement:
    """The Judgement of a kernel that is not judged, and the reason."""
    return Judgement(kernel, op or "", "", "", NOT_JUDGED, why=why, **known)


def junit(records: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> str:
    """JUnit's XML of judgements and their texts. What is not judged is an error of the test."""
    suite = ElementTree.Element("testsuite", name="refkernels judge", tests=str(len(records)))
    for said, text in zip(records, texts, strict=True):
        known = {"name": said["kernel"], "classname": said["op"], "time": said.get("seconds", 0)}
        case = ElementTree.SubElement(suite, "testcase", {k: str(v) for k, v in known.items()})
        if (verdict := said["verdict"]) != RIGHT:
            kind = "error" if verdict == NOT_JUDGED else "failure"
            ElementTree.SubElement(case, kind, message=verdict).text = text
    for kind in ("failure", "error"):
        suite.set(f"{kind}s", str(len(suite.findall(f"*/{kind}"))))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"
