"""The gallery: a table of all entries, and one entry as a page of Markdown.

The inputs are plain dicts, `Entry.to_dict`, and the explanation's own Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from refkernels.reporting.words.catalogues import by_language

Record = Mapping[str, Any]

_WORDS = by_language("gallery")


def gallery_table(entries: Iterable[Record]) -> Table:
    """One line per kernel: the report, and what its explanation finds (an entry's `expected`)."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("answered by")
    table.add_column("verdict", max_width=9)
    table.add_column("cause", no_wrap=True)
    for entry in entries:
        name = entry["name"] + (" *" if entry["recorded"] else "")
        for kernel, found in entry["expected"].items():
            if "|" not in kernel:  # a difference of two kernels
                verdict = found["verdict"].replace("_", " ")
                table.add_row(Text(name, style="bold"), kernel, verdict, found["cause"] or "none")
                name = ""
    return table


def gallery_page(entry: Record, answer: str, lang: str = "en") -> str:
    """One entry: the thread, where the evidence contradicts it, and the tool's own `answer`
    (Markdown, which ends with long scripts). `lang` is the language of the
    page; texts of the entry that have no Chinese version stay in English."""
    words = _WORDS[lang]
    entry = {**entry, **entry.get("zh", {})} if lang == "zh" else entry
    recorded = words["recorded"] if entry["recorded"] else ""
    origin = (
        ("source", _linked(entry["source"])),
        ("device", entry["device"] + recorded),
        ("provenance", entry["provenance"]),
        ("thread", entry["thread"]),
    )
    parts = [
        f"# {entry['title']}",
        f"{entry['reported']}",
        "\n".join(f"- {words[key]}{words['colon']}{text}" for key, text in origin),
    ]
    if entry["argument"]:
        parts.append(f"## {words['argument']}\n\n{entry['argument']}")
    parts.append(f"## {words['answer']}\n\n{answer.strip()}")
    return "\n\n".join(parts) + "\n"


def _linked(source: str) -> str:
    """The text with its addresses as Markdown links: not every renderer links a bare one."""
    return re.sub(r"https?://\S+", r"<\g<0>>", source)
