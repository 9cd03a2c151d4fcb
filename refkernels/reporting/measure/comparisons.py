"""Agreement, which targets give the same bits, and invariance, whose bits stay the same."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from refkernels.records.words import PROPERTIES
from refkernels.reporting.measure.scores import largest
from refkernels.reporting.measure.study import Study, as_number
from refkernels.reporting.reading import Record
from refkernels.reporting.words.vocabulary import rank_of_dtype


@dataclass
class TargetPair:
    """Two frameworks on one op and format, over all cases and outputs."""

    equal: int = 0
    elements: int = 0
    difference: float | None = None
    distance: float | None = None

    def add(self, record: Record) -> None:
        """Add one agreement record."""
        self.equal += int(as_number(record.get("equal_bits")) or 0)
        self.elements += int(as_number(record.get("elements")) or 0)
        difference = as_number(record.get("max_abs_difference"))
        self.difference = largest((self.difference, difference))
        self.distance = largest((self.distance, as_number(record.get("max_ulp_distance"))))

    @property
    def share(self) -> float:
        """Share of equal bits, 0 where nothing was compared."""
        return self.equal / self.elements if self.elements else 0.0


@dataclass(frozen=True, eq=False)
class Agreement:
    """The target x target matrix of one op, pass and format."""

    op: str
    direction: str
    dtype: str
    device: str  # of all targets; "" if they differ, and name theirs
    names: list[str]
    pairs: dict[tuple[str, str], TargetPair]

    @property
    def title(self) -> str:
        """`layernorm backward float32`."""
        device = f" on {self.device}" if self.device not in ("", "cpu", "mixed") else ""
        return f"{self.op} {self.direction} {self.dtype}{device}"

    def pair(self, a: str, b: str) -> TargetPair | None:
        """The pair in either order."""
        return self.pairs.get((a, b)) or self.pairs.get((b, a))

    @property
    def share(self) -> float:
        """Share of equal bits over all pairs."""
        elements = sum(pair.elements for pair in self.pairs.values())
        return sum(pair.equal for pair in self.pairs.values()) / elements if elements else 0.0


def agreements(study: Study) -> list[Agreement]:
    """One matrix per op, pass and format; those that agree least come first."""
    groups: dict[tuple[str, ...], dict[tuple[str, str], TargetPair]] = defaultdict(dict)
    devices: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for record in study.agreements:
        place = (record["op"], record["direction"], record["dtype"])
        a, b = sorted((record["a"], record["b"]))
        groups[place].setdefault((a, b), TargetPair()).add(record)
        devices[place].add(str(record.get("device") or ""))
    matrices = [
        Agreement(
            op,
            direction,
            dtype,
            "" if len(devices[op, direction, dtype]) > 1 else min(devices[op, direction, dtype]),
            sorted({name for pair in pairs for name in pair}),
            pairs,
        )
        for (op, direction, dtype), pairs in groups.items()
    ]
    return sorted(
        matrices,
        key=lambda matrix: (matrix.share, matrix.op, matrix.direction, rank_of_dtype(matrix.dtype)),
    )


@dataclass
class Checks:
    """The checks of one property of one op for one subject, over all records."""

    checked: int = 0
    broken: int = 0
    different: int = 0
    elements: int = 0
    note: str = ""

    def add(self, record: Record) -> None:
        """Add one invariance record with status ok."""
        self.checked += 1
        if record.get("holds") is False:
            self.broken += 1
            self.different += int(as_number(record.get("different")) or 0)
            self.elements += int(as_number(record.get("elements")) or 0)
            place = f"{record['direction']} {record['dtype']}, {record.get('case')}"
            detail = str(record.get("detail") or "")
            self.note = self.note or f"{place}: {detail}".rstrip(": ")


@dataclass(frozen=True, eq=False)
class Invariance:
    """One op: property x subject."""

    op: str
    rows: dict[str, dict[str, Checks]]

    @property
    def broken(self) -> int:
        """How many checks failed."""
        return sum(held.broken for cells in self.rows.values() for held in cells.values())

    @property
    def notes(self) -> list[tuple[str, str]]:
        """(subject, where its bits first changed) for each broken property."""
        return [
            (subject, held.note)
            for cells in self.rows.values()
            for subject, held in sorted(cells.items())
            if held.note
        ]


def invariances(study: Study) -> list[Invariance]:
    """One table per op; the op with most broken checks first."""
    groups: dict[str, dict[str, dict[str, Checks]]] = defaultdict(lambda: defaultdict(dict))
    for subject, record in study.invariances:
        if (record.get("status") or "ok") == "ok":
            cells = groups[record["op"]][record["property"]]
            cells.setdefault(subject, Checks()).add(record)
    tables = []
    for op, properties in groups.items():
        known = [name for name in PROPERTIES if name in properties]
        order = [*known, *sorted(properties.keys() - PROPERTIES)]
        tables.append(Invariance(op, {name: properties[name] for name in order}))
    return sorted(tables, key=lambda table: (-table.broken, table.op))
