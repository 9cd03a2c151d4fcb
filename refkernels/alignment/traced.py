"""Two runs, of which one is in PyTorch at least, compared call by call: `traces` runs its step
again in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refkernels.alignment.run import Run
from refkernels.alignment.suspect import Suspect
from refkernels.alignment.updates import KINDS
from refkernels.frameworks.environments import NotInstalled
from refkernels.profiling.program import written_by

TRACES = Path(__file__).with_name("traces")
UNEXPLAINED = "calls:parts"  # the kind without an edit
CALLS = "trace/calls"  # the tensor of a step's file that holds its calls


@dataclass(frozen=True)
class CallComparison:
    """What the calls of one step show. `complete`: whether all that B's update receives has
    partners in A, or would have them after the differences; `unseen`: what was not recorded;
    `agreed`: how many values of the layers of a `run` in another framework all have partners in the
    `other`, and how far the farthest is `apart`, over its norm."""

    step: int
    differences: tuple[Suspect, ...]
    complete: bool
    unseen: tuple[str, ...]
    agreed: Mapping[str, Any] | None = None

    @property
    def decides(self) -> bool:
        """Whether the calls say that the steps compute the same, or where they part."""
        return bool(self.differences) or (self.complete and not self.unseen)

    @property
    def forward(self) -> bool:
        """Whether the programs part before the loss."""
        return self.decides and any(one.topic == "forward" for one in self.differences)

    @property
    def same(self) -> bool:
        return self.decides and not self.differences


def traced(a: Run, b: Run) -> Callable[[], CallComparison | None]:
    """Waits for the comparison of the first step in which bits differ, of those that both captured
    and began with the same bits, or the first of two frameworks; it is made meanwhile. None where
    there are no calls: outside PyTorch, and in older captures."""
    first, second = sides = a.first, b.first
    called = [rank for rank in sides if rank.framework == "torch"]
    equal = None
    for step in sorted(set(first.steps) & set(second.steps)) if called else ():
        lines = [line for rank in sides for line in rank.lines if line.step == step]
        began = [rank.entered(step) for rank in sides]
        skipped = any(rank.skipped(line) for rank, line in zip(sides, lines, strict=True))
        if equal is not None and (skipped or None in began or began[0] != began[1]):
            break
        rows = [sorted(line.rows or ()) for line in lines]
        alike = lines[0].batch_hash == lines[1].batch_hash or rows[0] == rows[1] != []
        if not alike or any(CALLS not in rank.tensors(step).file for rank in called):
            break
        bits = [(line.batch_hash, line.gradients_hash, line.loss) for line in lines]
        if bits[0] != bits[1] or None in bits[0] or len(called) < 2:  # else nothing parts here
            files = [str(rank.tensors(step).file.path) for rank in sides]
            kinds = [rank.optimizer.type for rank in sides if rank.optimizer]
            unknown = bits[0][1] != bits[1][1] and not KINDS.keys() & {*kinds}
            own = [f"both: no oracle knows what {kind} computes" for kind in kinds[:unknown]]
            return ThreadPoolExecutor(1).submit(_compared, files, step, own).result
        equal = CallComparison(step, (), True, ())
    return lambda: equal


def _compared(files: list[str], step: int, own: list[str]) -> CallComparison | None:
    try:
        found = written_by(TRACES, *files)
    except NotInstalled:
        return None
    except ValueError as error:
        return CallComparison(step, (), False, (f"its calls could not be compared ({error})",))
    unseen = (*(f"{item['run']}: {item['reason']}" for item in found["unseen"]), *own)
    differing = tuple(_suspect(one, step) for one in found["differences"])
    return CallComparison(step, differing, bool(found["complete"]), unseen, found.get("agreed"))


def _suspect(found: Mapping[str, Any], step: int) -> Suspect:
    """Where B parts from A: the kind of the edit of A that gives B's values, B's module and line,
    the operator, and what each run has."""
    details = {name: value for name, value in found.items() if value is not None}
    a, b = (details.pop(name, "") for name in "ab")
    a, b = (f"{value:.9g}" if isinstance(value, float) else str(value) for value in (a, b))
    edit = details.pop("edit")
    if edit == "table" and a and b:
        edit = "base"
    if edit == "constant" and "argument" not in details:
        edit = "number"
    stage, where = details.pop("stage"), details.pop("where", "")
    return Suspect(stage, where, a, b, step, kind=f"calls:{edit}", details=details)
