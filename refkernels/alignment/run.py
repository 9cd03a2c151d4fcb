"""A captured run, read back: what `refkernels.capture` wrote (docs/capture.md gives the format).

`Run.read(folder)` reads every rank's run.json and steps.jsonl and looks at the header of every
step's tensors; the tensors themselves stay in their files until they are asked for.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from refkernels.alignment.reading import read_rank
from refkernels.alignment.recorded import Group, Layer, Optimizer, Parameter, Rank, StepLine
from refkernels.alignment.steps import Call, StepTensors
from refkernels.alignment.tensors import CaptureError
from refkernels.arguments import as_path

__all__ = [
    "Call", "CaptureError", "Group", "Layer", "Optimizer", "Parameter", "Rank", "Run", "StepLine",
    "StepTensors",
]  # fmt: skip

_RANK = re.compile(r"rank_(\d{1,9})")


@dataclass(frozen=True)
class Run:
    """A captured run: its ranks in order."""

    folder: Path
    ranks: tuple[Rank, ...]

    @property
    def first(self) -> Rank:
        """The first rank that was recorded."""
        return self.ranks[0]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is missing or damaged, over all ranks."""
        world = {rank.world_size for rank in self.ranks}
        found = [remark for rank in self.ranks for remark in rank.remarks]
        if len(world) > 1:
            found.append(f"The ranks of {self.folder} tell different world sizes: {sorted(world)}.")
        missing = sorted(set(range(max(world))) - {rank.rank for rank in self.ranks})[:9]
        if missing:
            listed = ", ".join(map(str, missing))
            found.append(f"{self.folder} lacks these ranks of {max(world)}: {listed}.")
        return tuple(found)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Run:
        """The run in a folder, or of one rank where the folder is a rank's. Raises CaptureError."""
        path = as_path(folder, "folder")
        try:
            names = sorted(os.listdir(path))
        except (OSError, ValueError) as error:
            raise CaptureError(f"{path} is no folder that can be read ({error}).") from None
        if "run.json" in names:
            return cls(path, (read_rank(path),))
        found = sorted((int(match[1]), name) for name in names if (match := _RANK.fullmatch(name)))
        if not found:
            raise CaptureError(
                f"{path} holds no captured run: it has neither rank_0/run.json nor run.json."
            )
        ranks = tuple(read_rank(path / name) for _, name in found)
        for (number, name), rank in zip(found, ranks, strict=True):
            if number != rank.rank:
                raise CaptureError(f"{path / name} says that it is rank {rank.rank}.")
        return cls(path, ranks)


def runs_in(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The run that a folder is; or, where it is none, the runs that are folders in it, in order.
    Raises CaptureError where there are neither."""
    path = as_path(folder, "folder")
    try:
        inner = sorted(one for one in path.iterdir() if one.is_dir())
    except OSError as error:
        raise CaptureError(f"{path} is no folder that can be read ({error}).") from None
    if (path / "run.json").exists() or any(_RANK.fullmatch(one.name) for one in inner):
        return (path,)
    found = tuple(one for one in inner if (one / "rank_0" / "run.json").exists())
    if not found:
        raise CaptureError(f"{path} holds no captured run, and no folder of one.")
    return found
