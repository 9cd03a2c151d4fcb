"""Prints the lines of code that ops cost: the tables of docs/architecture.md.

    python tools/price.py [OP ...] [--before FOLDER] [--write]

FOLDER is an older checkout, for the column "before"; --write puts the tables into the page, where a
column "before" stays as it is.

For an op: the definitions of its room that only it uses, those that other ops use too, its lines in
the adapters and among the equations, and the words for its faults. For a room: all lines, and lines
per op. Docstrings and blank lines within definitions count; tests are listed separately. For the
package: all lines by what they are for, before and now.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from refkernels import registry
from refkernels.records.files import write_whole

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "refkernels"
OPS = "hardswish", "softmax", "log_softmax", "rms_norm"
_BLOCK = re.MULTILINE | re.DOTALL
Place = tuple[str, str]  # a module and a name in it


def modules(room: str, package: Path = PACKAGE) -> dict[str, Path]:
    """The files of an oracle's room, by module."""
    folder = package / room
    if not folder.is_dir():
        return {room: folder.with_suffix(".py")}
    return {f"{room}.{path.stem}": path for path in sorted(folder.glob("*.py"))}


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


class Room:
    """The definitions of a room: their lines, and the other definitions that each names."""

    def __init__(self, room: str) -> None:
        self.spans: dict[Place, tuple[int, int]] = {}
        self.nodes: dict[Place, ast.stmt] = {}
        self.visible: dict[str, dict[str, Place | str]] = defaultdict(dict)
        trees = {
            name: ast.parse(path.read_text(encoding="utf-8"))
            for name, path in modules(room).items()
        }
        for module, tree in trees.items():
            for node in tree.body:
                for name in _bound(node):
                    place = module, name
                    decorators = [part.lineno for part in getattr(node, "decorator_list", [])]
                    first = min([node.lineno, *decorators])
                    self.spans[place] = first, node.end_lineno or node.lineno
                    self.nodes[place] = node
                    self.visible[module][name] = place
        for module, tree in trees.items():
            for node in tree.body:
                if not isinstance(node, ast.ImportFrom) or not node.module:
                    continue
                source = node.module.removeprefix("refkernels.")
                for alias in node.names:
                    if f"{source}.{alias.name}" in trees:
                        self.visible[module][alias.asname or alias.name] = f"{source}.{alias.name}"
                    elif source in trees:
                        self.visible[module][alias.asname or alias.name] = source, alias.name

    def named(self, place: Place, node: ast.AST) -> set[Place]:
        """The definitions that code names, in strings as well: `getattr(formulas, way)`."""
        visible, places = self.visible[place[0]], set()
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                places.add(visible.get(part.id))
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                places.add((visible.get(part.value.id), part.attr))
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                homes = [home for home in visible.values() if isinstance(home, str)]
                places |= {(home, word) for home in homes for word in part.value.split()}
        return {named for named in places if named in self.spans}

    def reached(self, op: str) -> set[Place]:
        """The definitions that the op needs: its record, its functions, and all that these name."""
        waiting = {
            place
            for place, node in self.nodes.items()
            if place[1] in (op, f"{op}_backward") or _makes(node, op)
        }
        known: set[Place] = set()
        while waiting:
            place = waiting.pop()
            known.add(place)
            if place[1] != "OPS":
                waiting |= self.named(place, self.nodes[place]) - known
        return known - {place for place in known if place[1] == "OPS"}

    def size(self, places: set[Place]) -> int:
        spans = {(module, *self.spans[module, name]) for module, name in places}
        return sum(last - first + 1 for _, first, last in spans)


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [name.id for name in targets if isinstance(name, ast.Name) and name.id != "__all__"]


def _makes(node: ast.stmt, op: str) -> bool:
    """Whether the statement is X = formula_op("op", ...)."""
    call = getattr(node, "value", None)
    first = call.args[:1] if isinstance(call, ast.Call) else []
    return any(isinstance(argument, ast.Constant) and argument.value == op for argument in first)


def beside(op: str) -> tuple[int, int, int]:
    """An op's lines in the adapters, of its equations, and of the words for its faults."""
    adapters = sum(
        f'"{op}"' in line
        for path in (PACKAGE / "frameworks" / "remote").glob("*_adapter.py")
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    equations = (ROOT / "docs" / "ops" / "equations.ini").read_text(encoding="utf-8")
    section = re.search(rf"^\[{op}\]\n(.*?)(?=^\[|\Z)", equations, _BLOCK)
    causes = (PACKAGE / "reporting" / "words" / "causes.py").read_text(encoding="utf-8")
    lines = 0
    faults = registry.get(op).definition
    for fault in faults.faults if faults else ():
        entry = re.search(
            rf'^    "{fault.cause}".*?(?=^    "|^}})', causes, re.MULTILINE | re.DOTALL
        )
        lines += len(entry[0].splitlines()) if entry else 0
    return adapters, len(section[1].strip().splitlines()) if section else 0, lines


def per_op(ops: Sequence[str]) -> list[list[str]]:
    rows = []
    for op in ops:
        home = next(room for room in registry.families() if op in names(room))
        room = Room(home)
        other_ops: set[Place] = set().union(
            *(room.reached(name) for name in names(home) if name != op)
        )
        mine = room.reached(op)
        own_lines, *other_lines = room.size(mine - other_ops), *beside(op)
        rows.append(
            [
                op,
                *map(
                    str,
                    (
                        own_lines,
                        room.size(mine & other_ops),
                        *other_lines,
                        own_lines + sum(other_lines),
                    ),
                ),
            ]
        )
    return rows


def names(room: str) -> list[str]:
    return [op.name for op in importlib.import_module(f"refkernels.{room}").OPS]


def per_room(before: Path | None) -> list[list[str]]:
    rows = []
    for room in registry.families():
        size, count = sum(map(lines, modules(room).values())), len(names(room))
        tests = sum(map(lines, (ROOT / "tests" / room).rglob("*.py")))
        lines_per_op = f"{size / count:.0f}" if count else "–"
        row = [f"`{room}`", str(count), f"{size:,}", lines_per_op, f"{tests:,}"]
        if before is not None:
            older = [
                path for path in modules(room, before / "refkernels").values() if path.exists()
            ]
            row.insert(2, f"{sum(map(lines, older)):,}" if older else "–")
        rows.append(row)
    return rows


GROUPS = {  # by what modules are for; older names too
    "oracles and their kernels": r".*_ref|elementwise|kernels",
    "contexts, ops": "contexts|ops|op|registry|question|truth|arguments|suggestion",
    "arithmetic": "arithmetic",
    "metrology": "metrology",
    "frameworks": "frameworks|seat_names",
    "runs, records": "runs|records|measurement|sweeps|journal",
    "diagnosis": "diagnosis",
    "printed": "printed",
    "capture, training, alignment": "capture|training|alignment",
    "judging": "judging",
    "testing": "testing|testing_plugin",
    "reporting, gallery": "reporting|rendering|gallery",
    "command line": r"cli|.*_command|importing|__init__|__main__",
}


def per_group(package: Path) -> dict[str, int]:
    """The lines of a package's modules by group."""
    sizes = dict.fromkeys(GROUPS, 0)
    for path in package.rglob("*.py"):
        first = path.relative_to(package).parts[0].removesuffix(".py")
        (group,) = (name for name, rule in GROUPS.items() if re.fullmatch(rule, first))
        sizes[group] += lines(path)
    return sizes


def of_package(before: Path | None) -> list[list[str]]:
    sizes = [per_group(root / "refkernels") for root in (before, ROOT) if root is not None]
    rows = [[name, *(f"{size[name]:,}" for size in sizes)] for name in GROUPS]
    return [*rows, ["in all", *(f"{sum(size.values()):,}" for size in sizes)]]


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def written(page: str, tables: Sequence[tuple[list[str], list[list[str]]]]) -> str:
    """The page with these tables in the place of those of the same kind. Columns "before" stay."""
    for head, rows in tables:
        start = page.index(f"| {head[0]} |")
        end = page.index("\n\n", start)
        old_rows = {cells[0]: cells for cells in map(_cells, page[start:end].splitlines())}
        if "before" in old_rows[head[0]] and "before" not in head:
            place = old_rows[head[0]].index("before")
            head = [*head[:place], "before", *head[place:]]
            rows = [
                [*row[:place], old_rows[row[0]][place] if row[0] in old_rows else "–", *row[place:]]
                for row in rows
            ]
        page = page[:start] + table(head, rows) + page[end:]
    return page


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("ops", nargs="*", default=OPS)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    times = ["before"] * (options.before is not None)
    tables = [
        (
            ["op", "own", "shared", "adapters", "equations", "words", "in all but shared"],
            per_op(options.ops),
        ),
        (["room", "ops", *times, "lines", "lines per op", "tests"], per_room(options.before)),
        (["for", *times, "now"], of_package(options.before)),
    ]
    if options.write:
        write_whole(PAGE, written(PAGE.read_text(encoding="utf-8"), tables))
    else:
        print("\n\n".join(table(head, rows) for head, rows in tables))
