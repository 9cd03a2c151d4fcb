"""Writes docs/xp.md, the names that `xp` offers to a formula.

python tools/write_xp.py

Everything below its introduction comes from refkernels/contexts/context.py and value.py: the
sections from the comments that divide the class, the names from its methods, the meanings from
their docstrings.
"""

import inspect
import re
from pathlib import Path

from refkernels.contexts.context import Context
from refkernels.records.files import write_whole

PAGE = Path(__file__).parent.parent / "docs" / "xp.md"


def sections() -> dict[str, list[str]]:
    """The names of Context's public methods by section, in order."""
    names: dict[str, list[str]] = {}
    title = ""
    for line in inspect.getsource(Context).splitlines():
        if divider := re.fullmatch(r"    # --- (.*?) -+", line):
            title = divider[1]
        elif (method := re.match(r"    (?:def )?([a-z]\w*)(?:\(| = _)", line)) and title:
            names.setdefault(title, []).append(method[1])
    return names


def entry(name: str) -> str:
    """A row of the table: the call and its meaning."""
    method = getattr(Context, name)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    call = ", ".join(str(parameter.replace(annotation=parameter.empty)) for parameter in parameters)
    meaning = " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())
    escaped = re.sub(r"([|*\[\]])", r"\\\1", meaning)
    return f"| `xp.{name}({call})` | {escaped} |"


def page() -> str:
    head, *_ = PAGE.read_text(encoding="utf-8").partition("## ")
    parts = [head.rstrip("\n") + "\n"]
    for title, names in sections().items():
        rows = "\n".join(entry(name) for name in names)
        parts.append(f"## {title.capitalize()}\n\n| call | meaning |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(write_whole(PAGE, page()))
