"""Writes the tables of docs/causes.md and docs/causes.zh.md, the causes that explanations name.

python tools/write_causes.py
"""

import re
from pathlib import Path

from refkernels.records.files import write_whole
from refkernels.reporting.words.causes import CAUSES

FOLDER = Path(__file__).parent.parent / "docs"
NAMES = {"en": "causes.md", "zh": "causes.zh.md"}
RULE = "|---|---|---|\n"


def page(lang: str) -> str:
    """The page in one language: its own text, and below it the table."""
    head, rule, _ = (FOLDER / NAMES[lang]).read_text(encoding="utf-8").partition(RULE)
    rows = []
    for name, cause in CAUSES.items():
        says = re.sub(r"\{(\w+)[^}]*\}", r"*\1*", cause[lang])
        pages = [f"[{k}]({source})" for k, source in enumerate(cause.get("sources", ()), 1)]
        todo = " ".join([cause["todo"][lang], *pages])
        rows.append(f"| `{name}` | {says} | {todo} |")
    return head + rule + "\n".join(rows) + "\n"


def main() -> None:
    for lang, name in NAMES.items():
        print(write_whole(FOLDER / name, page(lang)))


if __name__ == "__main__":
    main()
