"""A study: the records, sorted by kind, with a short unambiguous label for each thing measured.

A *subject* is a framework in one version, on one device, under one set of settings, or a formula
that its adapter composes ("NumPy formula"). Its label says no more than distinguishes it from the
other subjects ("torch", or "torch==2.6.0:cuda:0"), in the form of the command line
(`target_names`)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from refkernels.reporting.reading import Record
from refkernels.reporting.words.numerals import lost
from refkernels.reporting.words.vocabulary import Verdict, verdict
from refkernels.target_names import TargetName, TargetNameError, is_kernel, merged, parse, short


@dataclass(frozen=True, eq=False)
class Measurement:
    """One measurement record with the fields that views need; `record` holds all the rest."""

    record: Record
    subject: str
    op: str
    direction: str
    output: str
    dtype: str
    device: str
    case: str
    regime: str
    parameters: dict[str, Any]
    status: str
    reason: str
    verdict: Verdict
    flags: tuple[str, ...]

    def number(self, group: str, name: str) -> float | None:
        """The number `record[group][name]`, or None if there is none."""
        return as_number((self.record.get(group) or {}).get(name))

    @property
    def ulp_max(self) -> float | None:
        """The largest error in ulp; None if the bound is infinite at the worst element.

        There an intermediate overflow is allowed, hence any result: an error in ulp means nothing.
        """
        error = as_number(self.worst.get("ulp_error"))
        allowed = bool(error) and as_number(self.worst.get("error_over_bound")) == 0
        return None if allowed else self.number("ulp", "max")

    @property
    def at_zero(self) -> float | None:
        """The largest absolute value where the exact answer is 0, if one is not 0."""
        nonzero = "nonzero_at_zero" in self.flags
        return self.number("error", "max_abs_at_zero") if nonzero else None

    def tally(self, name: str) -> int:
        """A count of the record, 0 where absent."""
        value = self.number("counts", name)
        return int(value) if value is not None and math.isfinite(value) else 0

    @property
    def rounded(self) -> tuple[int, int]:
        """(how many results are correctly rounded, of how many for which that was decided).

        A special value counts like any other result: right where the exact answer is that value.
        """
        decided = max(self.tally("elements") - self.tally("undecided"), 0)
        return max(decided - self.tally("not_correctly_rounded"), 0), decided

    @property
    def worst(self) -> dict[str, Any]:
        """The worst element; an empty dict if nothing was compared."""
        return self.record.get("worst") or {}

    @property
    def unusual(self) -> bool:
        """Whether it stands out: the flag `unusual` or `avoidable` is set."""
        return bool({"unusual", "avoidable"} & set(self.flags))


def absolute_error(m: Measurement) -> float | None:
    """|got - exact| at the worst element, if its error in ulp leaves no digit. Where the relative
    error is huge because the value is tiny, this shows how much is lost."""
    worst = m.worst
    if not lost(abs(as_number(worst.get("ulp_error")) or 0.0), m.dtype):
        return None
    try:
        got, exact = (float(str(worst[side]["decimal"])) for side in ("got", "exact"))
    except (KeyError, TypeError, ValueError):  # none, or no number
        return None
    return abs(got - exact) if math.isfinite(got) and math.isfinite(exact) else None


@dataclass(frozen=True, eq=False)
class Study:
    """Everything the views are made from."""

    measurements: list[Measurement]  # status ok
    failures: list[Measurement]  # every other status
    agreements: list[Record]
    invariances: list[tuple[str, Record]]  # subject, record
    environments: list[Record]
    explanations: list[tuple[str, Record]]  # subject, record
    subjects: list[str]
    unknown: int  # records of a kind that this version does not know

    @classmethod
    def of(cls, records: list[Record]) -> Study:
        """Sort `records` by kind and label their subjects."""
        by_kind: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            by_kind[str(record.get("kind"))].append(record)
        labels = _labels({_identity(record) for record in by_kind["measurement"]})
        results = [_measurement(record, labels) for record in by_kind["measurement"]]
        known_kinds = ("measurement", "agreement", "invariance", "environment", "explanation")
        label_of_name = _compared_as(by_kind["measurement"], labels)
        return cls(
            measurements=[m for m in results if m.status == "ok"],
            failures=[m for m in results if m.status != "ok"],
            agreements=[
                {**record, **{side: label_of_name(record[side]) for side in ("a", "b")}}
                for record in by_kind["agreement"]
            ],
            invariances=[(_label_of(record, labels), record) for record in by_kind["invariance"]],
            environments=by_kind["environment"],
            explanations=[(_label_of(record, labels), record) for record in by_kind["explanation"]],
            subjects=_ordered(results),
            unknown=sum(len(alike) for kind, alike in by_kind.items() if kind not in known_kinds),
        )

    @cached_property
    def answered(self) -> set[tuple[str, str]]:
        """The (op, subject) pairs with an answer."""
        return {(m.op, m.subject) for m in self.measurements}

    @cached_property
    def unanswered(self) -> list[Measurement]:
        """The failures of targets that were to answer: a framework may lack an op, and a user's own
        kernel one direction of it."""
        failed = [m for m in self.failures if m.status != "unsupported"]
        tried = {(m.subject, m.op, m.direction) for m in (*self.measurements, *failed)}
        return [
            m
            for m in self.failures
            if m.status != "unsupported"
            or (is_kernel(m.subject) and (m.subject, m.op, m.direction) in tried)
        ]

    @property
    def without_formulas(self) -> Study:
        """The study with only the agreements between kernels: a formula composed of a framework's
        ops is not a kernel."""
        composed = [m for m in self.measurements if m.record.get("formula")]
        formulas = {name for m in composed for name in (m.subject, _compared_name(m.record))}
        between_kernels = [m for m in self.agreements if formulas.isdisjoint((m["a"], m["b"]))]
        return replace(self, agreements=between_kernels)

    def explanation_of(self, m: Measurement) -> Record | None:
        """The explanation of a measurement's case, if there is one."""
        return self._explained.get((m.subject, m.op, m.direction, m.dtype, m.case))

    @cached_property
    def _explained(self) -> dict[tuple[str, ...], Record]:
        names = ("op", "direction", "dtype", "case")
        return {
            (subject, *(str(record[name]) for name in names)): record
            for subject, record in self.explanations
        }


def _ordered(measurements: list[Measurement]) -> list[str]:
    """The subjects by name, kernels before formulas composed of a framework's ops."""
    formulas = {m.subject: bool(m.record.get("formula")) for m in measurements}
    return sorted(formulas, key=lambda name: (formulas[name], name))


def known_cause(explanation: Record | None) -> str | None:
    """The identifier of the cause that an explanation names."""
    cause = None if explanation is None else explanation.get("cause")
    return str(cause) if cause else None


def as_number(value: Any) -> float | None:
    """`value` as a float if it is a number (truth values are not)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


Identity = tuple[str, str, str, tuple[tuple[str, str], ...]]


def _identity(record: Record) -> Identity:
    settings = tuple(sorted((str(k), str(v)) for k, v in (record.get("settings") or {}).items()))
    version = str(record.get("version") or "")
    name = str(record.get("formula") or record["framework"])
    return name, version, str(record.get("device") or ""), settings


def _labels(identities: set[Identity]) -> dict[Identity, str]:
    """The shortest label that distinguishes each identity from the others of its framework: a name
    that `--framework` takes (but for a kernel's abi), or words if there is none (a formula)."""
    devices_of: dict[str, set[str]] = defaultdict(set)
    for name, _, device, _ in identities:
        devices_of[_framework(name)].add(device)
    distinguishing = {
        key: _distinguishing(
            key,
            [other for other in identities if other[0] == key[0]],
            devices_of[_framework(key[0])] - {""},
        )
        for key in identities
    }
    names = {key: _name(*parts) for key, parts in distinguishing.items()}
    once = _occurring_once(names.values())
    labels = {
        key: name if name and name in once else _words(*distinguishing[key])
        for key, name in names.items()
    }
    once = _occurring_once(map(short, labels.values()))
    return {key: short(label) if short(label) in once else label for key, label in labels.items()}


def _compared_name(record: Record) -> str:
    """What the agreement records call the target of a measurement."""
    device = str(record.get("device") or "cpu")
    name = str(record.get("formula") or record["framework"])
    return name if device == "cpu" else f"{name}:{device}"


def _compared_as(measurements: list[Record], labels: dict[Identity, str]) -> Callable[[str], str]:
    """A function from the names in agreement records to the labels of these targets. A formula's
    name may be that of several targets, under other settings: it stays."""
    subjects: dict[str, set[str]] = defaultdict(set)
    for record in measurements:
        subjects[_compared_name(record)].add(labels[_identity(record)])
    return lambda name: min(subjects[name]) if len(subjects.get(name, ())) == 1 else short(name)


def _occurring_once(names: Iterable[str]) -> set[str]:
    return {name for name, number in Counter(names).items() if number == 1}


def _framework(name: str) -> str:
    """The framework of a target, which may have settings; a formula is its own."""
    try:
        return parse(name).framework
    except TargetNameError:
        return name


def _distinguishing(identity: Identity, kin: list[Identity], devices: set[str]) -> Identity:
    """The parts of an identity that distinguish it from its kin; "" for the others. `devices`:
    those of its framework, whatever the settings of the targets."""
    # A framework that is not installed has no version, which does not count as a second version.
    versions = {other[1] for other in kin if other[1]}
    shared = set.intersection(*(set(other[3]) for other in kin))
    return (
        identity[0],
        identity[1] if len(versions) > 1 else "",
        identity[2] if len(devices) > 1 else "",
        tuple(setting for setting in identity[3] if setting not in shared),
    )


def _name(name: str, version: str, device: str, settings: tuple[tuple[str, str], ...]) -> str:
    """The name of the target with these parts; "" if no name can say them."""
    try:
        parsed = parse(name)
        all_settings = tuple(merged(dict(settings), parsed).items())
        version, device = version or parsed.version, device or parsed.device
        return str(TargetName(parsed.framework, version, parsed.kernel, all_settings, device))
    except TargetNameError:
        return ""


def _words(name: str, version: str, device: str, settings: tuple[tuple[str, str], ...]) -> str:
    listed = "[" + " ".join(f"{key}={value}" for key, value in settings) + "]" if settings else ""
    return " ".join(filter(None, (name, version, device, listed)))


def _label_of(record: Record, labels: dict[Identity, str]) -> str:
    """The subject of a record. An invariance record varies settings, so its own may differ."""
    identity = _identity(record)
    if identity in labels:
        return labels[identity]
    candidates = sorted(labels[label] for label in labels if label[:3] == identity[:3])
    return candidates[0] if candidates else identity[0]


def _measurement(record: Record, labels: dict[Identity, str]) -> Measurement:
    case = record["case"]
    flags = record.get("flags")
    parameters = case.get("parameters")
    return Measurement(
        record=record,
        subject=labels[_identity(record)],
        op=record["op"],
        direction=record["direction"],
        output=str(record.get("output") or ""),
        dtype=record["dtype"],
        device=str(record.get("device") or ""),
        case=str(case.get("name", "")),
        regime=str(case.get("regime", "")),
        parameters=parameters if isinstance(parameters, dict) else {},
        status=str(record.get("status", "error")),
        reason=str(record.get("reason") or ""),
        verdict=verdict(str(record.get("verdict"))),
        flags=tuple(str(flag) for flag in flags) if isinstance(flags, list) else (),
    )
