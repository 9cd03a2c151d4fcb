"""Writes docs/xp.md, the names that `xp` offers to a formula.

python tools/write_xp.py

Everything comes from refkernels/contexts/context.py and value.py: the sections from the comments
that divide the class, the names from its methods, the meanings from their docstrings.
"""

import inspect
import re
from pathlib import Path

from refkernels.contexts.context import Context
from refkernels.records.files import write_whole

PAGE = Path(__file__).parent.parent / "docs" / "xp.md"
HEAD = """# What `xp` has

A formula takes every operation from `xp` (see [Write an oracle](write-an-oracle.md)).
`python tools/write_xp.py` writes this page from the code.

- **Operators**: `+`, `-`, `*`, `/`, unary `-`, `abs()`, `<`, `>`, `<=`, `>=`; and `&`, `|`, `~` of
  comparisons. One operand may be an integer; write a float as `xp.number(0.5)`, which is exact.
  There is no `**`, no `==` and no `x[...]`, and a comparison has no truth value: Python's `if`,
  `and`, `max` and `min` raise `TypeError`.
- **Functions take values.** `xp.maximum(x, 0)` raises `TypeError`; write
  `xp.maximum(x, xp.number(0))`. The ends of `xp.clip` may be integers.
- **Shapes** are canonical: the leading axes are merged into one, the first, and each letter of the
  signature has one axis after it. A reduction is over the last axis and keeps it, with length 1.
- **Params** that are floats reach the formula as values; integers, strings and booleans do not
  change.
- **Kinks.** A tie of `maximum`, `minimum` or `clip`, and `abs(0)`, have an interval of derivatives;
  the enclosure contains all of them, so a kernel may return any. `xp.max` divides its gradient
  evenly among the largest. `xp.where` takes the branch that its condition chooses: with it, a
  formula states its own convention.
- **Undefined values.** If a formula divides by zero, nothing is certified: `assert_kernel` warns
  about such elements, and fails if there are no others. `xp.where` gives them another branch.
"""


def sections() -> dict[str, list[str]]:
    """The names of Context's public methods by section, in order."""
    names: dict[str, list[str]] = {}
    title = ""
    for line in inspect.getsource(Context).splitlines():
        if divider := re.fullmatch(r"    # --- (.*?) -+", line):
            title = divider[1]
        elif (method := re.match(r"    def ([a-z]\w*)\(", line)) and title:
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
    parts = [HEAD]
    for title, names in sections().items():
        rows = "\n".join(entry(name) for name in names)
        parts.append(f"## {title.capitalize()}\n\n| call | meaning |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(write_whole(PAGE, page()))
