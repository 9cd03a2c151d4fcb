"""Writes docs/coverage.md: what of PyTorch's, JAX's and ONNX's lists of operators is here.

python tools/write_coverage.py

tools/lists holds the lists, one name a line, and after it, where the names differ, the op, the
call of `xp` (xp.NAME) or the operator of imported programs (aten.NAME) that it is, "decomposed" if
programs have its parts, or !REASON where its answers are not real numbers of its inputs.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from refkernels import registry
from refkernels.contexts.context import Context
from refkernels.programs import elementwise, layers, moving
from refkernels.records.files import write_whole

ROOT = Path(__file__).parent
PAGE = ROOT.parent / "docs" / "coverage.md"
KINDS = {
    "op": "Ops",
    "imported": "Imported",
    "xp": "Calls of `xp`",
    "outside": "No function of real numbers",
    "": "Lacking",
}
IMPORTED = {
    name.removeprefix("aten.")
    for rules in (elementwise.RULES, layers.LAYERS, moving.REDUCTIONS, moving.MOVING)
    for name in rules
}
OPERATORS = {name.partition(".")[0] for name in IMPORTED}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


OPS = {_plain(name): name for name in registry.ops()}
CALLS = {_plain(name): name for name in vars(Context) if name[0] != "_"}


def target(library: str, name: str, given: str) -> tuple[str, str]:
    """What a name is here: its kind, and the op, call, operator or reason."""
    own = name.rpartition(".")[2] if library == "JAX" else name
    if given.startswith("!"):
        return "outside", given[1:]
    if library == "PyTorch":
        return ("imported" if name in IMPORTED or given == "decomposed" else ""), ""
    if not given:
        found = OPS.get(_plain(own)) or f"xp.{CALLS.get(_plain(own), '')}"
        given = "" if found == "xp." else found
    for known, prefix, kind in ((OPERATORS, "aten.", "imported"), ({*vars(Context)}, "xp.", "xp")):
        if given.startswith(prefix):
            assert given.removeprefix(prefix) in known, f"{name}: there is no {given}"
            return kind, given
    assert {*given.split()} <= {*registry.ops()}, f"{name}: there is no op {given}"
    return ("op" if given else ""), given


def listed() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Each library with its version, and (name, kind, what) of its operators."""
    for path in sorted((ROOT / "lists").glob("*.txt")):
        title, *lines = path.read_text(encoding="utf-8").splitlines()
        library = title.split()[1]
        rows = []
        for line in lines:
            name, _, given = line.partition(" ")
            rows.append((name, *target(library, name, given)))
        yield title.removeprefix("# "), rows


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    head = PAGE.read_text(encoding="utf-8").partition("<!-- coverage")[0]
    counts, parts = [], []
    for title, rows in listed():
        number = Counter(kind for _, kind, _ in rows)
        counts.append(
            f"| {title} | {len(rows)} | " + " | ".join(str(number[kind]) for kind in KINDS) + " |"
        )
        parts.append(f"\n## {title}")
        for kind, heading in KINDS.items():
            found = [(name, what) for name, own, what in rows if own == kind]
            if kind == "outside":
                why = {what: [name for name, own in found if own == what] for _, what in found}
                texts = [f"{what}: {_listed(names)}" for what, names in why.items()]
                parts.append(f"\n**{heading}**: {'; '.join(texts)}")
            elif found:
                texts = [
                    f"`{name}`"
                    + (
                        f" ({what})"
                        if _plain(what.partition(".")[2] or what) not in _plain(name)
                        else ""
                    )
                    for name, what in found
                ]
                parts.append(f"\n**{heading}**: {', '.join(texts)}")
    table = ["| list | names | " + " | ".join(KINDS.values()) + " |", "|---" * 7 + "|", *counts]
    return "\n".join(
        [f"{head}<!-- coverage: tools/write_coverage.py makes the rest -->", *table, *parts, ""]
    )


if __name__ == "__main__":
    print(write_whole(PAGE, page()))
