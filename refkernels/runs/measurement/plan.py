"""What a run consists of: units, each one case in one dtype and direction for all frameworks."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from refkernels import registry
from refkernels.arguments import as_flag, as_names
from refkernels.op import DIRECTIONS, DTYPES, Case, Direction, Op
from refkernels.suggestion import instead, nearest, quoted

INVARIANCE_DTYPES = ("float32", "float64")
MANY_CASES = 10  # an op with fewer is looked at more briefly: its invariance forward only


@dataclass(frozen=True)
class Unit:
    """One case in one dtype and direction; `case` is None for the op's invariance."""

    op: Op
    case: Case | None
    dtype: str
    direction: Direction

    @property
    def key(self) -> str:
        """Unique in a run and stable between runs."""
        name = self.case.name if self.case else f"{self.op.name}/invariance"
        return f"{name} {self.dtype} {self.direction}"


@dataclass(frozen=True)
class Plan:
    """The units of a run, in the order in which they are measured and reported."""

    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    units: tuple[Unit, ...]


def select(
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    cases: Sequence[str] = (),
    invariance: bool = True,
) -> Plan:
    """The plan for some ops, dtypes and case-name patterns (`*` matches anything; "matmul" alone
    stands for all its cases); empty means all. Patterns on cases leave the invariance out.

    Raises ValueError for an unknown op or dtype, for a pattern that matches no case, and where
    nothing is left to measure; TypeError for what is no list of names.
    """
    ops, dtypes = as_names(ops, "ops"), as_names(dtypes, "dtypes")
    cases = as_names(cases, "cases")
    invariance = as_flag(invariance, "invariance")
    chosen = [registry.get(name) for name in dict.fromkeys(ops)] or list(registry.ops().values())
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"There is no dtype {quoted(dtype)}: {instead(dtype, DTYPES)}.")
    wanted = tuple(dict.fromkeys(dtypes)) or DTYPES
    units: list[Unit] = []
    used: set[str] = set()
    for op in chosen:
        for case in op.cases():
            hits = [pattern for pattern in cases if _matches(case, pattern)]
            used.update(hits)
            if cases and not hits:
                continue
            units += [
                Unit(op, case, dtype, direction)
                for dtype in wanted
                if dtype in case.dtypes
                for direction in DIRECTIONS
                if direction in case.directions
            ]
        if invariance and not cases:
            directions = DIRECTIONS if len(op.cases()) >= MANY_CASES else DIRECTIONS[:1]
            units += [
                Unit(op, None, dtype, direction)
                for dtype in wanted
                if dtype in INVARIANCE_DTYPES
                for direction in directions
            ]
    if lost := [pattern for pattern in cases if pattern not in used]:
        of_these = f" of {', '.join(op.name for op in chosen)}" if ops else ""
        meant = nearest(lost[0], (case.name for op in chosen for case in op.cases()))
        raise ValueError(
            f"No case{of_these} is called {quoted(lost[0])}: "
            + (f"did you mean {meant!r}? " if meant else "")
            + "`refkernels measure --list` shows their names, and * stands for any part of one."
        )
    if not units:
        raise ValueError(
            f"None of these cases has inputs in {', '.join(wanted)}: `refkernels measure --list` "
            "shows the dtypes of each."
        )
    return Plan(tuple(op.name for op in chosen), wanted, tuple(units))


def _matches(case: Case, pattern: str) -> bool:
    """fnmatch without its brackets, because case names have brackets of their own."""
    literal = pattern.replace("[", "[[]")
    return any(fnmatch.fnmatchcase(case.name, candidate) for candidate in (literal, f"{literal}/*"))
