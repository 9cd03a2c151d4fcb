"""Writes docs/ops: a page for each oracle module, with a section for each op, and their index.

python tools/write_ops.py

Equations and the descriptions of the named forms come from docs/ops/equations.ini; the rest from
the registry, the oracles' docstrings, the list of causes, and the adapters' sources. No framework
is started.
"""

from __future__ import annotations

import ast
import configparser
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from refkernels import registry
from refkernels.diagnosis.edits import usual
from refkernels.frameworks import adapters, catalog
from refkernels.op import Op
from refkernels.ops.letters import Argument
from refkernels.records.files import write_whole
from refkernels.reporting.words.causes import CAUSES
from refkernels.runs.measurement import FRAMEWORKS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "ops"
EQUATIONS = FOLDER / "equations.ini"
_PLACE = re.compile(r"\{(\w+)[^}]*\}")


@cache
def texts() -> dict[str, dict[str, str]]:
    """The texts of equations.ini, by op."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, comment_prefixes="#")
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(EQUATIONS, encoding="utf-8")
    by_op: dict[str, dict[str, str]] = {}
    for section in parser.sections():
        for op in section.split():
            by_op.setdefault(op, {}).update(parser[section])
    return by_op


def texts_of(op: str) -> dict[str, str]:
    """The texts of an op. Raises ValueError where equations.ini has none."""
    if op not in texts():
        raise ValueError(
            f"{EQUATIONS.relative_to(ROOT)} has no section [{op}]: write one with its equation, "
            "forward = y = ..., backward = dx = ..., and a line for each form, as in [hardswish]."
        )
    return texts()[op]


def says(cause: str) -> str:
    """The sentence on a fault. Raises ValueError where there is none."""
    if cause not in CAUSES:
        raise ValueError(
            f"The fault {cause!r} has no words: write them in English and Chinese in "
            "refkernels/reporting/words/causes.json, and run tools/write_causes.py."
        )
    return CAUSES[cause]["en"]


def equations(op: str, direction: str) -> list[str]:
    """The equations of one direction, one or more, as LaTeX."""
    lines = texts().get(op, {}).get(direction, "").splitlines()
    return [line.strip() for line in lines if line.strip()]


def form_names(op: Op, direction: str) -> list[str]:
    """The named forms, the definition first; none for a library's own function."""
    if (function := op.real_function) is not None:
        forms = function.forms if direction == "forward" else function.slope_forms
        return [form.name for form in forms]
    definition = op.definition
    assert definition is not None, f"{op.name} is neither a function nor made of formulas."
    return list(definition.of(direction).forms)  # type: ignore[arg-type]


# --- what the docstrings say ----------------------------------------------------------------------


def _first_sentences(text: str) -> str:
    """The text up to the first sentence that is not about the bound or condition number."""
    sentences: list[str] = []
    for sentence in re.split(r"(?<=[.;])\s+(?=[A-Z`])", text):
        if re.match(r"(Raises|Sources?:|Otherwise as|(What e|E)lse\b)", sentence):
            break
        sentences.append(sentence)
    return " ".join(sentences)


def _bounds_in(document: str | None) -> str:
    """The paragraph about the bound, from that word's sentence on."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(document or "")):
        flat = " ".join(paragraph.split())
        starts = [0, *(match.end() for match in re.finditer(r"(?<=[.;]) (?=[A-Z])", flat))]
        for start, end in zip(starts, [*starts[1:], len(flat)], strict=True):
            if re.search(r"\bbounds?\b", flat[start:end], re.I):
                return _first_sentences(flat[start:])
    return ""


def bound(op: Op, family: str, direction: str) -> str:
    """The bound in the words of the oracle's docstring; the function's limit where it has one."""
    function = op.real_function
    if function is not None and direction == "forward" and function.limit is not None:
        return f"{function.limit:g} ulp ({function.limit_source})."
    module = importlib.import_module(f"refkernels.{family}")
    document = getattr(op, f"{direction}_bound").__doc__
    if inspect.isfunction(getattr(op, f"{direction}_bound")) and op.formulas is None and document:
        return _first_sentences(" ".join(inspect.cleandoc(document).split()))
    name = op.name if direction == "forward" else f"{op.name}_backward"
    return _bounds_in(getattr(getattr(module, name, None), "__doc__", None))


def condition(op: Op, direction: str) -> str:
    """The condition number in the words of its function's docstring, if it has its own function."""
    function = getattr(op, f"{direction}_condition")
    if not inspect.isfunction(function) or op.formulas is not None:
        return ""
    return _first_sentences(" ".join(inspect.cleandoc(function.__doc__ or "").split()))


# --- what the adapters' sources say ---------------------------------------------------------------


class _Source(NamedTuple):
    """An adapter's imported modules by their names there, its functions, and the entries of OPS
    and of FORMULAS."""

    modules: dict[str, str]
    functions: dict[str, ast.AST]
    entries: dict[str, ast.expr]
    formulas: dict[str, str]


@cache
def _source(adapter: Path, module: str) -> _Source:
    tree = ast.parse(adapters.source_of(adapter))
    modules = {"framework": module}  # as functions of shared.py call it
    functions: dict[str, ast.AST] = {}
    formulas: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
        elif isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FORMULAS":
            parts = map(ast.literal_eval, getattr(node.value, "args", [node.value]))
            formulas = dict.fromkeys(*parts) if isinstance(node.value, ast.Call) else next(parts)
    entries = {}
    for op, value in adapters.table_of(adapter, "OPS").items():
        assert isinstance(value, ast.Tuple)
        function = value.elts[1]
        entries[op] = function.body if isinstance(function, ast.IfExp) else function
    return _Source(modules, functions, entries, formulas)


def _called(node: ast.AST, modules: dict[str, str]) -> Iterator[str]:
    """The full names of the framework's functions in the code of a node."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            head, _, attribute = ast.unparse(part).partition(".")
            if head in modules and re.fullmatch(r"[\w.]+", attribute):
                yield f"{modules[head]}.{attribute}"


def _reached(node: ast.AST, functions: dict[str, ast.AST]) -> list[ast.AST]:
    """The node, and the adapter's own functions that it names, and those that they name."""
    nodes, waiting = [node], [node]
    while waiting:
        names = {part.id for part in ast.walk(waiting.pop()) if isinstance(part, ast.Name)}
        named = [functions[name] for name in sorted(names & functions.keys())]
        waiting += [function for function in named if function not in nodes]
        nodes += [function for function in named if function not in nodes]
    return nodes


def _checked(text: str, op: str, framework: str, node: ast.AST, source: _Source) -> str:
    """The functions that equations.ini names. Raises ValueError where the adapter calls another."""
    modules, functions = source.modules, source.functions
    reached = _reached(node, functions)
    known = {name for part in reached for name in _called(part, modules)}
    leaves = [leaf for part in reached for leaf in ast.walk(part) if isinstance(leaf, ast.Constant)]
    texts = {leaf.value for leaf in leaves}
    texts |= {str(text).capitalize() for text in texts}  # as ONNX writes its operators
    imported = {
        f"{node.module}.{alias.name}"
        for part in reached
        for node in ast.walk(part)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name in text.split():
        qualifier, _, attribute = name.rpartition(".")
        if name not in known | imported and not (
            attribute in texts and qualifier in {*known, *modules.values()}
        ):
            raise ValueError(f"[{op}] {framework} = {name}: the adapter does not call it.")
    return " / ".join(f"`{name}`" for name in text.split())


def computes(op: str, framework: Any) -> str:
    """What a framework's adapter computes for an op, or why it does not.

    Raises ValueError where neither its code nor equations.ini says it, and where they disagree.
    """
    reasons = adapters.ops_of(framework.adapter)
    reason = reasons.get(op, f"its adapter has no op named {op}")
    if reason is not None:
        return f"not measured: {reason}"
    source = _source(framework.adapter, framework.module)
    modules, _, entries, formulas = source
    if op in formulas:
        return f"a formula ({formulas[op]})"
    node = entries[op]
    text = texts_of(op).get(framework.name)
    if text is not None:
        return _checked(text, op, framework.name, node, source)
    if isinstance(node, ast.Call) and framework.name == "libm":
        return f"C's `{ast.literal_eval(node.args[0])}`, where the library has it"
    if not isinstance(node, ast.Lambda):
        raise ValueError(
            f"[{op}] {framework.name}: say in {EQUATIONS.name} what its function calls."
        )
    body = node.body
    called = dict.fromkeys(_called(body, modules))
    names = [name for name in called if not any(n.startswith(f"{name}.") for n in called)]
    if isinstance(body, ast.Call) and len(names) == 1:
        fixed = [
            f"{keyword.arg}={ast.unparse(keyword.value)}"
            for keyword in body.keywords
            if isinstance(keyword.value, ast.Constant)
        ]
        return f"`{names[0]}" + (f"(..., {', '.join(fixed)})`" if fixed else "`")
    return f"`{ast.unparse(body)}`" + (
        f", that is {', '.join(f'`{n}`' for n in names)}" * bool(names)
    )


# --- pages ----------------------------------------------------------------------------------------


def _shaped(argument: Argument) -> str:
    shape = f"`{argument.name}[{' '.join(argument.letters)}]`" + (
        f" {argument.kind}" if argument.kind != "float" else ""
    )
    return f"[{shape}]" if argument.optional else shape


def _shapes(op: Op, direction: str, gives: bool) -> str:
    """Inputs or outputs with their letters; of a function of one number, any shape."""
    if op.definition is None:
        names = op.names(direction) if gives else op.takes(direction)  # type: ignore[arg-type]
        return ", ".join(f"`{name}[...]`" for name in names)
    signature = op.definition.of(direction).signature  # type: ignore[arg-type]
    return ", ".join(map(_shaped, (signature.gives if gives else signature.takes).values()))


def _way(op: Op, family: str, direction: str) -> list[str]:
    """Equations, arrays, forms and bound of one direction."""
    descriptions = texts_of(op.name)
    lines = [f"### {op.name}: {direction}", ""]
    for equation in equations(op.name, direction):
        lines += ["$$", equation, "$$", ""]
    for key in ("note", "reduction"):
        if direction == "forward" and key in descriptions:
            lines += [descriptions[key].replace("\n", " "), ""]
    lines += [f"{_shapes(op, direction, False)} → {_shapes(op, direction, True)}", ""]
    if names := form_names(op, direction):
        lines += ["Forms:", ""]
        for name in names:
            meaning = descriptions.get(f"{direction} {name}")
            lines.append(f"- `{name}`" + (f": {_literal(meaning)}" if meaning else ""))
        lines.append("")
    if statement := bound(op, family, direction):
        lines += [f"Bound: {_literal(statement)}", ""]
    if statement := condition(op, direction):
        lines += [f"Condition number: {_literal(statement)}", ""]
    return lines


def _literal(text: str) -> str:
    """Markdown that shows the text literally; code in backquotes stays."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_|<>$\[\]])", r"\\\1", part)
        for part in parts
    )


def _faults(op: Op) -> list[str]:
    faults = [f for direction in op.directions for f in usual.faults_of_op(op, direction)]
    if not faults:
        return [
            "Faults: none is a formula of this op; [causes.md](../causes.md) has what explanations "
            "name.",
            "",
        ]
    lines = ["| fault | the kernel ... | in |", "|---|---|---|"]
    ways: dict[str, list[str]] = {}
    for fault in faults:
        labels = ways.setdefault(fault.cause, [])
        formulas = {"forward": fault.forward, "backward": fault.backward}
        labels += [
            way for way, formula in formulas.items() if formula is not None and way not in labels
        ]
        labels += ["unstable"] * (fault.unstable and "unstable" not in labels)
    for cause, labels in ways.items():
        sentence = _PLACE.sub(r"*\1*", says(cause))
        lines.append(f"| `{cause}` | {sentence} | {', '.join(labels)} |")
    return [*lines, ""]


def _section(op: Op, family: str) -> list[str]:
    lines = [f"## {op.name}", ""]
    for direction in op.directions:
        lines += _way(op, family, direction)
    if op.params:
        params = ", ".join(f"`{name}={value!r}`" for name, value in op.params.items())
        lines += [f"Params: {params}", ""]
    lines += [*_faults(op), "| framework | what is measured |", "|---|---|"]
    for framework in catalog.frameworks():
        if framework.name not in (*FRAMEWORKS, "libm"):  # those of the report
            continue
        lines.append(f"| {framework.name} | {computes(op.name, framework)} |")
    return [*lines, ""]


def ops_of(family: str) -> dict[str, Op]:
    """The ops of an oracle module, by name."""
    return {op.name: op for op in importlib.import_module(f"refkernels.{family}").OPS}


def families() -> list[str]:
    """The oracle modules that have ops."""
    return [family for family in registry.families() if ops_of(family)]


def page(family: str) -> str:
    """The page of an oracle module."""
    document = inspect.cleandoc(importlib.import_module(f"refkernels.{family}").__doc__ or "")
    title = " ".join(document.split("\n\n")[0].split())
    lines = [f"# {family}", "", _literal(title), "", "[All ops](README.md)", ""]
    for op in ops_of(family).values():
        lines += _section(op, family)
    return "\n".join(lines)


def index() -> str:
    """README.md: its own text, and below it a table by family."""
    head = (FOLDER / "README.md").read_text(encoding="utf-8").partition("| oracle |")[0]
    lines = ["| oracle | op | inputs | outputs | gradients |", "|---|---|---|---|---|"]
    for family in families():
        for op in ops_of(family).values():
            link = f"[`{op.name}`]({family}.md#{op.name})"
            gradients = ", ".join(f"`{name}`" for name in op.gradients) or "none"
            inputs, outputs = (_shapes(op, "forward", gives) for gives in (False, True))
            lines.append(f"| `{family}` | {link} | {inputs} | {outputs} | {gradients} |")
    return head + "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    return {"README.md": index(), **{f"{family}.md": page(family) for family in families()}}


def main() -> None:
    try:
        written = pages()
    except ValueError as error:
        sys.exit(f"write_ops: {error}")
    for name, text in written.items():
        print(write_whole(FOLDER / name, text))


if __name__ == "__main__":
    main()
