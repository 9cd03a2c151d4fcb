"""A captured run, read back from the files of `refkernels.capture` (format: docs/capture.md).

`Run.read(folder)` reads every rank's run.json and steps.jsonl and checks the header of every step's
tensors; the tensors themselves stay in their files until they are used.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from refkernels.alignment.reading import read_rank
from refkernels.alignment.recorded import Group, Layer, Optimizer, Parameter, Rank, StepLine
from refkernels.alignment.steps import LayerCall, StepTensors
from refkernels.alignment.tensors import CaptureError
from refkernels.arguments import as_path
from refkernels.suggestion import path_shown

__all__ = [
    "CaptureError", "Group", "Layer", "LayerCall", "Optimizer", "Parameter", "Rank", "Run",
    "StepLine", "StepTensors",
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
        world_sizes = {rank.world_size for rank in self.ranks}
        remarks = [remark for rank in self.ranks for remark in rank.remarks]
        if len(world_sizes) > 1:
            remarks.append(
                f"The ranks of {self.folder} give different world sizes: {sorted(world_sizes)}."
            )
        missing = sorted(set(range(max(world_sizes))) - {rank.rank for rank in self.ranks})[:9]
        if missing:
            listed = ", ".join(map(str, missing))
            remarks.append(f"{self.folder} lacks these ranks of {max(world_sizes)}: {listed}.")
        return tuple(remarks)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Run:
        """The run in a folder; in a rank's folder, a run of that rank alone. Raises
        CaptureError."""
        path = as_path(folder, "folder")
        try:
            names = sorted(os.listdir(path))
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None
        if "run.json" in names:
            return cls(path, (read_rank(path),))
        numbered = sorted(
            (int(match[1]), name) for name in names if (match := _RANK.fullmatch(name))
        )
        if not numbered:
            raise CaptureError(
                f"{path} holds no captured run: it has neither rank_0/run.json nor run.json."
            )
        ranks = tuple(read_rank(path / name) for _, name in numbered)
        for (number, name), rank in zip(numbered, ranks, strict=True):
            if number != rank.rank:
                raise CaptureError(f"{path / name} says that it is rank {rank.rank}.")
        return cls(path, ranks)


def runs_in(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The folder itself if it holds a run, else the folders of runs inside it, in order. Raises
    CaptureError where there are neither."""
    path = as_path(folder, "folder")
    try:
        inner = sorted(inside for inside in path.iterdir() if inside.is_dir())
    except OSError as error:
        raise _unreadable(path, error) from None
    if (path / "run.json").exists() or any(_RANK.fullmatch(inside.name) for inside in inner):
        return (path,)
    runs = tuple(inside for inside in inner if (inside / "rank_0" / "run.json").exists())
    if not runs:
        raise CaptureError(f"{path} holds no captured run, and no folder of one.")
    return runs


def _unreadable(path: Path, error: OSError | ValueError) -> CaptureError:
    reason = getattr(error, "strerror", None) or error
    return CaptureError(f"{path_shown(path)} is not a folder that can be read ({reason}).")
