"""Writes docs/operators.md, the operators of PyTorch that a program may call.

python tools/write_operators.py

Everything comes from the table that reads them, `refkernels.programs.operators`.
"""

from pathlib import Path

from refkernels.programs import elementwise, layers, moving
from refkernels.records.files import write_whole

PAGE = Path(__file__).parent.parent / "docs" / "operators.md"
SECTIONS = {
    "Numbers, element by element": elementwise.RULES,
    "Layers": layers.LAYERS,
    "Reductions": moving.REDUCTIONS,
    "Elements that move": moving.MOVING,
}


def names(rules: dict[str, object]) -> str:
    """`add` (Scalar, Tensor): every operator once, with its overloads if it has several."""
    overloads: dict[str, list[str]] = {}
    for name in sorted(rules):
        operator, _, overload = name.removeprefix("aten.").partition(".")
        overloads.setdefault(operator, []).append(overload)
    return ", ".join(
        f"`{operator}`" + (f" ({', '.join(found)})" if len(found) > 1 else "")
        for operator, found in overloads.items()
    )


def page() -> str:
    page = PAGE.read_text(encoding="utf-8")
    head = page.partition("<!-- operators")[0]
    parts = [f"## {title}\n\n{names(rules)}\n" for title, rules in SECTIONS.items()]
    return head + "<!-- operators: tools/write_operators.py makes the rest -->\n" + "\n".join(parts)


if __name__ == "__main__":
    print(write_whole(PAGE, page()))
