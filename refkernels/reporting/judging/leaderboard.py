"""leaderboard.html, .md and .json from a folder's judgements: the right kernels by time, the others
with their reasons."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from refkernels.records.files import write_whole
from refkernels.records.texts import showable
from refkernels.records.words import SCHEMA
from refkernels.reporting.answer.markdown import grid
from refkernels.reporting.judging.views import MARKS, because, time_of
from refkernels.reporting.reading import Record, read_records
from refkernels.reporting.templating import document, sections_of
from refkernels.reporting.words.escaping import clipped, code, escaped
from refkernels.reporting.words.judgement import VERDICT_WORDS, WORDS
from refkernels.reporting.words.process import flushing

RECORDS = "judgements.jsonl"
_REASONS = 2
Json = dict[str, Any]


def write_leaderboard(directory: Path, lang: str = "en") -> list[Path]:
    """Write leaderboard.html, .md and .json from directory/judgements.jsonl. Raises RecordsError
    (one sentence) for records that cannot be read."""
    records = read_records(Path(directory) / RECORDS)
    groups, refused = board(records, lang)
    notes = _notes(records, lang)
    text = _markdown(groups, refused, notes, lang)
    head = {"schema": SCHEMA, "kind": "leaderboard"}
    content = {**head, "groups": groups, "refused": refused}
    pages = {
        "html": document(*sections_of(text), "judge", lang),
        "md": text,
        "json": json.dumps(content, indent=1, allow_nan=False) + "\n",
    }
    return [
        write_whole(Path(directory) / f"leaderboard.{suffix}", page)
        for suffix, page in pages.items()
    ]


def board(records: Sequence[Record], lang: str = "en") -> tuple[list[Json], list[Json]]:
    """The right kernels by question, whose times can be compared, and in it by time; and the
    others, with the reasons in sentences."""
    right = defaultdict(list)
    refused = []
    for record in records:
        if record["verdict"] == "right":
            inputs = (record["time"] or {}).get("inputs", "")
            right[record["op"], record["direction"], record["dtype"], inputs].append(record)
        else:
            refused.append(_refused(record, lang))
    names = ("op", "direction", "dtype", "inputs")
    groups = [
        {**dict(zip(names, question, strict=True)), "rows": _rows(alike)}
        for question, alike in sorted(right.items())
    ]
    return groups, refused


def _rows(records: Sequence[Record]) -> list[Json]:
    times = [record["time"]["seconds"] for record in records if record["time"]]
    rows = []
    for record in records:
        seconds = record["time"]["seconds"] if record["time"] else None
        killed, alive = (len(record["mutants"][key]) for key in ("killed", "alive"))
        rows.append({
            "kernel": showable(record["kernel"]), "seconds": seconds,
            "slower": seconds / min(times) if seconds else None,  # than the fastest
            "killed": killed, "mutants": killed + alive,
            "smallest": min(map(float, record["smallest_error_ulp"].values()), default=None),
        })  # fmt: skip
    return sorted(
        rows, key=lambda row: (row["seconds"] is None, row["seconds"] or 0.0, row["kernel"])
    )


def _refused(record: Record, lang: str) -> Json:
    why = because(record.get("reasons", ()), lang, "refused")[:_REASONS]
    return {
        "kernel": showable(record["kernel"]), "op": record["op"] or "",
        "verdict": record["verdict"],
        "why": [showable(sentence) for sentence in why or [record.get("why", "")]],
    }  # fmt: skip


def lines(records: Sequence[Record], lang: str = "en") -> Iterator[str]:
    """The board for the terminal."""
    words = WORDS[lang]
    groups, refused = board(records, lang)
    yield _lead(groups, refused, lang)
    yield from _notes(records, lang)
    for group in groups:
        yield ""
        yield _title(group, lang)
        for row in group["rows"]:
            time = words["untimed"] if row["seconds"] is None else time_of(row["seconds"])
            yield f"  {MARKS['right']} {time:>9}  {clipped(row['kernel'], 90)}"
    if refused:
        yield ""
        yield words["others"]
    for kernel in refused:
        mark, verdict = _verdict(kernel["verdict"], lang).split(" ", 1)
        yield f"  {mark} {clipped(kernel['kernel'], 90)}: {verdict}"
        yield f"      {clipped(kernel['why'][0], 200)}"


def _lead(groups: Sequence[Json], refused: Sequence[Json], lang: str) -> str:
    right = sum(len(group["rows"]) for group in groups)
    return WORDS[lang]("lead", right=right, all=right + len(refused))


def _notes(records: Sequence[Record], lang: str) -> list[str]:
    """The kernels whose process flushes subnormal numbers."""
    return [
        f"{showable(record['kernel'])}: {flushing(record['flushes'], lang, 'there')}"
        for record in records
        if record.get("flushes") is not None
    ]


def _title(group: Json, lang: str) -> str:
    words = WORDS[lang]
    return words("group", **{**group, "inputs": group["inputs"] or words["untimed"]})


def _cells(row: Json, lang: str) -> list[str]:
    """The cells after a right kernel's name."""
    return [
        WORDS[lang]["untimed"] if row["seconds"] is None else time_of(row["seconds"]),
        "" if row["slower"] is None else f"{row['slower']:.2f} ×",
        f"{row['killed']} / {row['mutants']}",
        "" if row["smallest"] is None else f"{row['smallest']:.3g} ulp",
    ]


def _markdown(
    groups: Sequence[Json], refused: Sequence[Json], notes: Sequence[str], lang: str
) -> str:
    words = WORDS[lang]
    parts = [f"# {words['board']}", _lead(groups, refused, lang), *map(escaped, notes)]
    parts += [f"## {words['right_ones']}"]
    for group in groups:
        rows = [[_name(row["kernel"]), *_cells(row, lang)] for row in group["rows"]]
        parts += [f"### {escaped(_title(group, lang))}", grid(words["columns"], rows, "l----")]
    parts += [words["no_right"]] if not groups else []
    rows = [
        [_name(row["kernel"]), row["op"], _verdict(row["verdict"], lang),
         escaped("; ".join(row["why"]))]
        for row in refused
    ]  # fmt: skip
    parts += [f"## {words['others']}", grid(words["refusals"], rows, "llll") if rows else ""]
    parts += [] if rows else [words["no_refused"]]
    parts += [f"## {words['read_board']}", words["clock"], words["wrong_refused"]]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(name: str, lang: str) -> str:
    return f"{MARKS.get(name, '✗')} {VERDICT_WORDS[lang][name]}"


def _name(kernel: str) -> str:
    """A kernel's name for a Markdown table, in which a bare bar would end the cell."""
    return code(kernel).replace("|", "\\|")
