"""A folder of kernels, judged one after another. Finished judgements are kept, so a run can resume.

    OUT/judgements.jsonl     a record for each kernel: its Judgement, or why it could not be judged

The kernels of one op share a seed, and hence their truths. A resumed run draws a new seed: until a
run ends, its seed is written only in the records of kernels that are already judged. A record has
its file's digest; a file that has changed since is judged again.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from refkernels.frameworks import catalog, kernels
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import judge
from refkernels.judging.judgement import NOT_JUDGED, VERDICTS, not_judged
from refkernels.records.journal import Journal, Json, Words
from refkernels.records.texts import showable
from refkernels.target_names import KernelPath, TargetName, with_setting

RECORDS = "judgements.jsonl"


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


def kernels_in(
    folder: Path, op: str | None = None, python: str | None = None
) -> tuple[list[tuple[str, str, str]], list[Json]]:
    """The kernels of a folder's Python files: each one's op, its name with its settings, and its
    file's digest, by op, whose truths are then drawn once. And a record for every file that cannot
    be read. A file without kernels, such as one of helpers, has neither."""
    accepted, refused = [], []
    for path in sorted(folder.glob("*.py")):
        try:
            if showable(path.name) != path.name:
                raise kernels.KernelError(
                    "Its name has characters that no page can show: rename it"
                )
            functions = kernels.functions(path, op)
        except kernels.KernelError as error:
            refused.append(not_judged(showable(str(path)), op, showable(f"{error}.")).to_dict())
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        for function in functions:
            name = TargetName(kernel=KernelPath(str(path), function))
            if op != (named := kernels.op_named_by(function)):
                name = with_setting(name, "op", op)
            accepted.append((op or str(named), str(with_setting(name, "python", python)), digest))
    return sorted(accepted, key=lambda kernel: kernel[0]), refused


def judge_all(
    folder: Path,
    out: Path,
    settings: Mapping[str, Any],
    resume: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, kernel: None,
) -> list[Json]:
    """Judge the kernels of a folder, op by op; return their records, which `out` keeps. `settings`:
    the op and the interpreter, which may be None, and other arguments of `judge`.

    Raises ValueError (one sentence) for a folder without kernels, JournalError for an `out` that
    holds other work.
    """
    entries, refused = kernels_in(folder, settings.get("op"), settings.get("python"))
    if not entries:
        raise ValueError(
            f"{folder} has no kernel: it needs a Python file with a function that is named after "
            "its op, such as my_softmax, or with any function and --op."
        )
    kept = {"folder": str(folder), **json.loads(json.dumps(settings))}
    journal = JudgementJournal(out, kept, resume)
    finished = journal.records() if journal.complete else journal.done.values()
    known = {(record.get("kernel"), record.get("file")): record for record in finished}
    given = {k: v for k, v in settings.items() if k not in ("op", "python")}
    given["seed"] = secrets.randbits(48) if settings.get("seed") is None else settings["seed"]
    shared: dict[str, Examinations] = {}
    for number, (op, name, digest) in enumerate(entries):
        progress(number, len(entries), name)
        if op not in shared:
            shared = {op: Examinations()}  # drops the truths of the previous op
        judged = known.get((name, digest)) or _judged(name, op, examinations=shared[op], **given)
        journal.add(name, {**judged, "file": digest})
    progress(len(entries), len(entries), "")
    records = [*refused, *(journal.done[name] for _, name, _ in entries)]
    journal.write(records)
    return records


def _judged(entry: str, op: str, **settings: Any) -> Json:
    try:
        return judge(entry, **{"times": True, **settings}).to_dict()
    except (ValueError, catalog.FrameworkError) as error:
        reason = f"{str(error).rstrip('.')}."
    except Exception as error:  # one kernel that breaks the judge does not stop the folder
        reason = f"The judge failed on it ({type(error).__name__}: {error})."
    return not_judged(entry, op, showable(reason)).to_dict()
