"""How certain the truth is: which tier of the oracle answered, and how wide its intervals are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from refkernels.reporting.measure.scores import largest
from refkernels.reporting.measure.study import Study, as_number
from refkernels.reporting.words.vocabulary import rank_of_direction, rank_of_dtype

TIERS = {
    "float64": "one float64 pass with a proven bound",
    "slices": "error-free slices in float64 products",
    "double_double": "double-double arithmetic",
    "exact": "multiple precision or integers",
}


@dataclass
class Certainty:
    """One op, pass and format over all cases. An element counts once, however many frameworks
    computed it."""

    op: str
    direction: str
    dtype: str
    tiers: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    undecided: int = 0  # roundings of frameworks' results, over all of them
    width: float | None = None

    @property
    def elements(self) -> int:
        """How many elements the tiers answered."""
        return sum(self.tiers.values())

    @property
    def place(self) -> str:
        """`layernorm backward`."""
        return f"{self.op} {self.direction}"

    @property
    def title(self) -> str:
        """`layernorm backward float32`."""
        return f"{self.op} {self.direction} {self.dtype}"


def certainties(study: Study) -> list[Certainty]:
    """One row per op, pass and format whose records count tiers, in the order of the tables."""
    rows: dict[tuple[str, str, str], Certainty] = {}
    counted: set[tuple[str, str, str, str]] = set()
    for m in study.measurements:
        tiers = (m.record.get("oracle") or {}).get("tiers")
        if not isinstance(tiers, dict):
            continue
        key = (m.op, m.direction, m.dtype)
        row = rows.setdefault(key, Certainty(*key))
        row.width = largest((row.width, m.number("ulp", "max_uncertainty")))
        row.undecided += m.tally("undecided")
        if (*key, m.case) not in counted:
            counted.add((*key, m.case))
            for tier, elements in tiers.items():
                row.tiers[tier] += int(as_number(elements) or 0)
    return sorted(
        rows.values(),
        key=lambda row: (row.op, rank_of_direction(row.direction), rank_of_dtype(row.dtype)),
    )
