"""What a run consists of: units, each one case in one dtype and direction for all frameworks.

A plan that is not full, the command's default, has few of an op's cases (`_quick`), and the op's
invariance, forward in float32, over the last case of each regime, the large ones included: it
judges no answers.
"""

import fnmatch
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from refkernels import registry
from refkernels.arguments import as_flag, as_names
from refkernels.op import DTYPES, Case, Direction, Op
from refkernels.suggestion import did_you_mean, nearest, quoted

LARGE = {
    **dict.fromkeys(("n", "K", "rows", "keys", "products", "decay_steps"), 2048),
    "channels": 64,
    "t": 64,
    "steps": 32,
}
"""Parameters that count elements, or steps in a row, and the value from which a case is large."""
WIDE = ("float32", "float64")
SPECIALS = "specials"  # the regime of NaN, infinities and zeros
INVARIANCE = "invariance"  # the regime of rows that are also asked alone
MANY_CASES = 10  # the invariance of an op with fewer is measured in the forward direction only


@dataclass(frozen=True)
class Unit:
    """A case in a dtype and direction; None: the op's invariance over `cases`, by default all."""

    op: Op
    case: Case | None
    dtype: str
    direction: Direction
    cases: tuple[Case, ...] = ()

    @property
    def key(self) -> str:
        """Unique in a run and stable between runs."""
        name = self.case.name if self.case else f"{self.op.name}/invariance"
        return f"{name} {self.dtype} {self.direction}"


@dataclass(frozen=True)
class Plan:
    """The units of a run, in the order of the report. `full`: all cases. `left_out`: how many more
    units a full run has of the same ops and formats, not counting invariance."""

    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    units: tuple[Unit, ...]
    full: bool = True
    left_out: int = 0

    @property
    def first(self) -> tuple[Unit, ...]:
        """One unit of each op, for a first table, of a case, forward and in float32 if it can be;
        the ops with the most units first, which are the best known."""
        units = Counter(unit.op.name for unit in self.units)
        first: dict[str, Unit] = {}
        cases = (unit for unit in self.units if unit.case is not None)
        for unit in sorted(cases, key=lambda u: (u.dtype != "float32", u.direction != "forward")):
            first.setdefault(unit.op.name, unit)
        return tuple(sorted(first.values(), key=lambda unit: -units[unit.op.name]))

    @property
    def order(self) -> tuple[Unit, ...]:
        """The units in the order in which they are measured: `first`, then the others."""
        keys = {unit.key for unit in self.first}
        return (*self.first, *(unit for unit in self.units if unit.key not in keys))


def select(
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    cases: Sequence[str] = (),
    invariance: bool = True,
    full: bool = True,
) -> Plan:
    """The plan for some ops, dtypes and case-name patterns (`*` matches anything; "matmul" alone
    stands for all its cases); empty means all. With patterns, invariance is left out. Without them,
    `full=False` takes only the core of the cases.

    Raises ValueError for an unknown op or dtype, for a pattern that matches no case, and if nothing
    is left to measure; TypeError for an argument that is not a list of names.
    """
    ops, dtypes = as_names(ops, "ops"), as_names(dtypes, "dtypes")
    cases = as_names(cases, "cases")
    invariance, full = as_flag(invariance, "invariance"), as_flag(full, "full") or bool(cases)
    chosen_ops = [registry.get(name) for name in dict.fromkeys(ops)] or list(
        registry.ops().values()
    )
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"There is no dtype {quoted(dtype)}: {did_you_mean(dtype, DTYPES)}.")
    wanted_dtypes = tuple(dict.fromkeys(dtypes)) or DTYPES
    units: list[Unit] = []
    left_out = 0
    matched: set[str] = set()
    for op in chosen_ops:
        all_cases = op.cases()
        if not all_cases:
            raise ValueError(
                f"There are no inputs to measure {op.name} on, as it takes a list of arrays: "
                "testing.assert_kernel and explain take yours."
            )
        planned_cases = {
            (dtype, direction): all_cases if full else _quick(all_cases, dtype, direction)
            for dtype in wanted_dtypes
            for direction in op.directions
        }
        for case in all_cases:
            hits = [pattern for pattern in cases if _matches(case, pattern)]
            matched.update(hits)
            if cases and not hits:
                continue
            of_case = [
                Unit(op, case, dtype, direction)
                for dtype in wanted_dtypes
                if dtype in case.dtypes
                for direction in op.directions
                if direction in case.directions
            ]
            planned = [u for u in of_case if case in planned_cases[u.dtype, u.direction]]
            units += planned
            left_out += len(of_case) - len(planned)
        if invariance and not cases:
            both_directions = full and len(all_cases) >= MANY_CASES
            asked = () if full else [alike[-1] for alike in _by_regime(all_cases).values()]
            units += [
                Unit(op, None, dtype, direction, tuple(asked))
                for dtype in wanted_dtypes
                if dtype in WIDE[: None if full else 1]
                for direction in (op.directions if both_directions else op.directions[:1])
            ]
    if unmatched := [pattern for pattern in cases if pattern not in matched]:
        of_these = f" of {', '.join(op.name for op in chosen_ops)}" if ops else ""
        suggested = nearest(unmatched[0], (case.name for op in chosen_ops for case in op.cases()))
        raise ValueError(
            f"No case{of_these} is called {quoted(unmatched[0])}: "
            + (f"did you mean {suggested!r}? " if suggested else "")
            + "`refkernels measure --list` shows their names, and * stands for any part of one."
        )
    if not units:
        raise ValueError(
            f"None of these cases has inputs in {', '.join(wanted_dtypes)}: `refkernels measure "
            "--list` shows the dtypes of each."
        )
    return Plan(tuple(op.name for op in chosen_ops), wanted_dtypes, tuple(units), full, left_out)


def is_large(case: Case) -> bool:
    """Whether a case is too large for the default, by its parameters."""
    sizes = ((case.parameters.get(name, 0), least) for name, least in LARGE.items())
    return any(isinstance(size, int) and size >= least for size, least in sizes)


def _quick(cases: Sequence[Case], dtype: str, direction: Direction) -> list[Case]:
    """The cases of a direction that are not large, and of these, in each format, specials. In 16
    bits: the last of the op's first regime, which has the longest sums that are not large, and in
    float16 the first. In float32 and float64: the middle one of each regime, forward in float32;
    else of every second regime, so that backward each is measured in one of the two. And in float32
    every case of a published thread (`seed_`), and one of invariance. In 29 % of a full run's units
    they show 76 % of what it finds of five frameworks, by op, direction and format.
    """
    there = [c for c in cases if dtype in c.dtypes and direction in c.directions]
    regimes = _by_regime([case for case in there if not is_large(case)])
    of_float32 = [name for name in regimes if name == INVARIANCE or name.startswith("seed_")]
    if dtype != "float32":
        regimes = {n: alike for n, alike in regimes.items() if n not in of_float32} or regimes
    specials = regimes.pop(SPECIALS, [])
    chosen = specials[len(specials) // 2 :][:1]
    if dtype not in WIDE:
        first = next(iter(regimes.values()), [])
        return [*first[: int(dtype == "float16")], *first[-1:], *chosen]
    left_out: list[str] = []
    if (dtype, direction) != ("float32", "forward") and len(regimes) > 1:
        in_both = [n for n in regimes if n not in of_float32 and {*WIDE} <= {*regimes[n][0].dtypes}]
        left_out = in_both[int((dtype, direction) != ("float64", "backward")) :: 2]
    for name, alike in regimes.items():
        if name not in left_out:
            chosen += alike if name.startswith("seed_") else [alike[len(alike) // 2]]
    return chosen


def _by_regime(cases: Sequence[Case]) -> dict[str, list[Case]]:
    regimes: dict[str, list[Case]] = {}
    for case in cases:
        regimes.setdefault(case.regime, []).append(case)
    return regimes


def _matches(case: Case, pattern: str) -> bool:
    """fnmatch with literal brackets, because case names contain brackets."""
    literal = pattern.replace("[", "[[]")
    return any(fnmatch.fnmatchcase(case.name, candidate) for candidate in (literal, f"{literal}/*"))
