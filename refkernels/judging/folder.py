"""A folder of kernels, judged one after another: what is done is kept, so that it can go on.

    OUT/judgements.jsonl     a record for each kernel: its Judgement, or why it could not be judged

The kernels of one op share a seed, and so the truths. It is drawn anew when the work goes on: until
it ends, a seed lies in no file but in the records of what is judged already. A record names its
file's digest: what has changed since is judged again.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from refkernels.frameworks import catalog, kernels
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import judge
from refkernels.judging.judgement import VERDICTS
from refkernels.records.journal import Journal, Json, Words
from refkernels.records.texts import showable
from refkernels.records.words import SCHEMA

RECORDS = "judgements.jsonl"
NOT_JUDGED = "not_judged"


class JudgementJournal(Journal):
    """The folder of the judgements; `done` holds the records by kernel. Raises JournalError."""

    words = Words(
        records=RECORDS,
        journal="judgement-journal.jsonl",
        manifest="judging.json",
        work="folder of judgements",
        done="judged",
        redo="judge its kernel",
        piece="kernel",
        result="judgement",
    )

    @staticmethod
    def sound(key: str, result: Any) -> bool:
        return result["kernel"] == key and result["verdict"] in (*VERDICTS, NOT_JUDGED)


@dataclass(frozen=True)
class Question:
    """What is asked of every kernel: arguments of `judge`, and the interpreter for each."""

    op: str | None = None
    dtype: str = "float32"
    level: str = "default"
    seed: int | None = None
    lengths: Mapping[str, tuple[int, ...]] | None = None
    device: str = "cpu"
    python: str | None = None

    @property
    def record(self) -> Json:
        """The question as the folder keeps it."""
        return {
            "op": self.op, "dtype": self.dtype, "level": self.level, "seed": self.seed,
            "lengths": {letter: list(some) for letter, some in (self.lengths or {}).items()},
            "device": self.device, "python": self.python,
        }  # fmt: skip


def found(folder: Path, op: str | None = None) -> tuple[list[tuple[Path, str]], list[Json]]:
    """The kernels of a folder's Python files, and a record for every file that is none."""
    named, refused = [], []
    for path in sorted(folder.glob("*.py")):
        if showable(path.name) != path.name:
            why = "Its name has characters that no page can show: rename it."
            refused.append(_refusal(showable(str(path)), op, why))
            continue
        try:
            functions = kernels.functions(path, op)
        except kernels.KernelError as error:
            refused.append(_refusal(str(path), op, showable(f"{error}.")))
            continue
        named += [(path, function) for function in functions]
    return named, refused


def judge_all(
    folder: Path,
    out: Path,
    question: Question,
    resume: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, kernel: None,
) -> list[Json]:
    """Judge the kernels of a folder, op by op; their records, which `out` keeps.

    Raises ValueError, one sentence, for a folder without kernels, JournalError for an `out` that
    holds other work.
    """
    named, refused = found(folder, question.op)
    if not named:
        raise ValueError(
            f"{folder} has no kernel: a Python file in it whose function says its op by name, such "
            "as my_softmax, or any function with --op."
        )
    journal = JudgementJournal(out, {"folder": str(folder), **question.record}, resume)
    seats = sorted(_seats(named, question), key=lambda one: one.op)
    finished = journal.records() if journal.complete else []
    names = [one["kernel"] for one in refused] + [one.name for one in seats]
    before = {one.get("kernel"): one for one in finished} or dict(journal.done)
    kept = {one.name for one in seats if before.get(one.name, {}).get("file") == one.digest}
    if [one.get("kernel") for one in finished] == names and len(kept) == len(seats):
        return finished
    for name in kept - journal.done.keys():
        journal.add(name, before[name])
    seed = secrets.randbits(48) if question.seed is None else question.seed
    shared: dict[str, Examinations] = {}
    for number, seat in enumerate(seats):
        progress(number, len(seats), seat.name)
        if seat.name in kept:
            continue
        if seat.op not in shared:
            shared = {seat.op: Examinations()}  # the truths of the last op are not needed any more
        result = _judged(seat.name, question, seed, shared[seat.op])
        journal.add(seat.name, {**result, "file": seat.digest})
    progress(len(seats), len(seats), "")
    records = [*refused, *(journal.done[seat.name] for seat in seats)]
    journal.write(records)
    return records


class _Seat(NamedTuple):
    """A kernel's name, with what belongs to it, its op, and its file's digest."""

    name: str
    op: str
    digest: str


def _seats(named: Sequence[tuple[Path, str]], question: Question) -> list[_Seat]:
    from refkernels.seat_names import Kernel, SeatName, with_setting

    seats = []
    for path, function in named:
        name = SeatName(kernel=Kernel(str(path), function))
        if question.op != kernels.said(function):
            name = with_setting(name, "op", question.op)
        name = with_setting(name, "python", question.python)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        seats.append(_Seat(str(name), question.op or str(kernels.said(function)), digest))
    return seats


def _judged(seat: str, question: Question, seed: int, shared: Examinations) -> Json:
    try:
        return judge(
            seat, dtype=question.dtype, level=question.level, seed=seed, times=True,
            lengths=question.lengths, device=question.device, examinations=shared,
        ).to_dict()  # fmt: skip
    except (ValueError, catalog.FrameworkError) as error:
        return _refusal(seat, question.op, showable(f"{str(error).rstrip('.')}."))
    except Exception as error:  # what one kernel does to the judge ends no folder
        why = f"The judge failed on it ({type(error).__name__}: {error})."
        return _refusal(seat, question.op, showable(why))


def _refusal(kernel: str, op: str | None, why: str) -> Json:
    return {
        "schema": SCHEMA, "kind": "judgement", "kernel": kernel, "op": op, "direction": "",
        "dtype": "", "verdict": NOT_JUDGED, "why": why,
    }  # fmt: skip
