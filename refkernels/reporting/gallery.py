"""The gallery: a table of all entries, and one entry as a page of Markdown.

Everything is made of plain dicts: an entry's, its explanation's (`Explanation.to_dict`) and the
consequences' where there are some; and of the explanation's own Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

Told = Mapping[str, Any]


def gallery_table(rows: Iterable[tuple[Told, Told]]) -> Table:
    """(entry, explanation) pairs, one line a kernel: what was reported and what is behind it."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in ("name", "answered by"):
        table.add_column(column, no_wrap=True)
    table.add_column("verdict", max_width=9)  # leaves room for the longest cause on 80 columns
    table.add_column("cause", overflow="fold")
    for entry, explanation in rows:
        name = entry["name"] + (" *" if entry["recorded"] else "")
        for kernel, found in explanation["kernels"].items():
            verdict = found["verdict"].replace("_", " ")
            table.add_row(Text(name, style="bold"), kernel, verdict, _cause(found))
            name = ""
    return table


def gallery_page(entry: Told, answer: str, consequences: Told | None = None) -> str:
    """One entry: the thread, where the evidence differs from it, what the error leads to, and the
    tool's own `answer` (Markdown, which ends with long scripts)."""
    parts = [
        f"# {entry['title']}",
        f"{entry['reported']}",
        f"- Source: {entry['source']}\n- Device: {entry['device']}"
        + (" (recorded: its answers are data here)" if entry["recorded"] else "")
        + f"\n- Where the numbers are from: {entry['provenance']}\n- The thread says: "
        + entry["thread"],
    ]
    if entry["argument"]:
        parts.append(f"## The thread and the evidence\n\n{entry['argument']}")
    if consequences is not None:
        parts.append(_consequences(consequences))
    parts.append(f"## What the numbers say\n\n{answer.strip()}")
    return "\n\n".join(parts) + "\n"


def _cause(found: Told) -> str:
    if found["cause"] is None:
        return "none"
    return f"{found['cause']} ({found['confidence']})"


def _consequences(told: Told) -> str:
    """The schedule above the operator."""
    question = told["question"]
    lines = [
        "## What it does to the schedule above it",
        "",
        f"lr(t) = min_lr + (max_lr - min_lr) / 2 (1 + cos(pi t / T)) in float32, with min_lr = "
        f"{question['min_lr']:g}, max_lr = {question['max_lr']:g}, T = {question['decay_steps']}, "
        "all steps:",
        "",
        "| the cosine | last rate | below min_lr | rising steps | in [min_lr, max_lr], falling |",
        "|---|---|---|---|---|",
    ]
    for name, found in told["schedules"].items():
        holds = "holds" if found["holds"] else "**violated**"
        lines.append(
            f"| {name} | {found['last']:.3g} | {found['below']} | {found['increases']} | {holds} |"
        )
    lines += [
        "",
        "A relative error of the cosine is multiplied by |cos| / (1 + cos): by "
        f"{told['amplification']:.3g} one step before the end, without limit at the end. So an "
        "operator that keeps to its limit in ulp can still make the rate negative, and then the "
        "optimiser climbs. The first cure, clipping, keeps the sign whatever the operator; the "
        "second, the sine, trades one operator's error for another's: with the recorded value the "
        "rate stays above zero, and does not get down to it.",
    ]
    return "\n".join(lines)
