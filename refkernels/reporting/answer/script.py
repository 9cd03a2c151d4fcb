"""Scripts to paste: the question in one framework, without refkernels.

A script needs only that framework and NumPy. It holds the inputs as hex bytes, and the op as the
adapter's own code. It prints each element's value, also in hex, beside the exact value and the
values reported before. Inputs that are cut are zero elsewhere but keep their shape, which decides
the order of summation.
"""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refkernels.reporting.answer.facts import ExplainedKernel, Record, place_of
from refkernels.reporting.answer.markdown import folded
from refkernels.reporting.templating import template
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.escaping import clipped, escaped
from refkernels.target_names import framework_of

_WIDTH = 96
_STORAGE = {
    "float16": "<f2", "bfloat16": "<u2", "float32": "<f4", "float64": "<f8",
    "int64": "<i8", "bool": "|b1", "int8": "|i1", "float8_e4m3fn": "|u1", "float8_e5m2": "|u1",
}  # fmt: skip
_SHOWN = {"float16": "float16", "bfloat16": "float32", "float32": "float32", "float64": "float64"}


@dataclass(frozen=True)
class _Plumbing:
    """How a framework is imported, takes arrays, returns them and differentiates (`script.json`).
    `{a}` stands for a NumPy array, `{leaves}` for the inputs, `{y}` for the output."""

    module: str
    tensor: str
    host: str
    bfloat16: str = ""
    leaf: str = ""
    gradients: str = ""
    start: str = ""
    float8: str = ""


_PLUMBING = {
    name: _Plumbing(**entry)
    for name, entry in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}


def script(
    question: Mapping[str, Any],
    framework: str,
    source: str,
    environment: Mapping[str, Any] | None = None,
) -> str | None:
    """The script that asks a framework the question; None if there can be none.

    `question`: explain's evidence["question"]; `source`: the text of the framework's adapter;
    `environment`: its record, whose settings and device are used.
    """
    plumbing, record = _PLUMBING.get(framework), environment or {}
    op = _operation(source, question["op"])
    backward = question["direction"] == "backward"
    if plumbing is None or op is None or (backward and not plumbing.gradients):
        return None
    dtypes = _dtypes(question)
    if "low" in dtypes.values() or ("bfloat16" in dtypes.values() and not plumbing.bfloat16):
        return None
    if not plumbing.float8 and any(dtype.startswith("float8") for dtype in dtypes.values()):
        return None
    device = str(record.get("device") or "cpu")
    operands = [
        name for name in question["shapes"] if not (backward and name == _cotangent(question))
    ]
    tensors = [
        f"{name} = {_tensor(plumbing, name, dtypes[name], device)}" for name in question["shapes"]
    ]
    start = [plumbing.start.format(device=repr(device))] if plumbing.start else []
    call = [*start, *tensors, *_call(question, plumbing, op, operands)]
    head = [
        f"# It needs {'NumPy' if framework == 'numpy' else framework + ' and NumPy'} only.",
        *_settings(record),
        *_imports(source, framework, "\n".join([op.text, plumbing.host, *call])),
    ]
    return _written(question, framework, head, op.text, plumbing.host, call)


def blank_script(question: Mapping[str, Any]) -> str:
    """The script for a user's own kernel; the user fills in the call."""
    names = list(question["shapes"])
    output_names = dict.fromkeys(element["output"] for element in question["elements"])
    outputs = ", ".join(f"'{name}': ..." for name in output_names)
    params = [f"{key}={_param(value)}" for key, value in question["params"].items()]
    function = (
        f"def kernel({', '.join([*names, *params])}):\n"
        f'    raise NotImplementedError("Call your kernel here: return {{{outputs}}}")'
    )
    dtypes = _dtypes(question).items()
    wide = [f"{name} = widened({name})" for name, dtype in dtypes if dtype == "bfloat16"]
    call = [*wide, f"outputs = kernel({', '.join(names)})"]
    host = "np.asarray(tensor, np.float64)"
    return _written(question, "it", ["import numpy as np"], function, host, call)


def _written(
    question: Mapping[str, Any],
    asked: str,
    head: Sequence[str],
    functions: str,
    host: str,
    call: Sequence[str],
) -> str:
    """The script: `functions` is the op's text, `host` the expression of a tensor as an array, and
    `call` the lines that give `outputs`."""
    arrays = [
        (name, _STORAGE.get(array["dtype"], "|u1"), tuple(array["shape"]),
         [(_place(part["index"]), textwrap.wrap(part["hex"], _WIDTH)) for part in array["parts"]])
        for name, array in (question["inputs"] or {}).items()
    ]  # fmt: skip
    elements = [
        (element["output"], tuple(element["index"]), element["exact"]["decimal"],
         {name: got["decimal"] for name, got in element["got"].items()})
        for element in question["elements"]
    ]  # fmt: skip
    return template("script.py.j2", html=False).render(
        question=question, asked=asked, head=head, functions=functions, host=host, call=call,
        arrays=arrays, elements=elements, shown=_SHOWN[question["format"]],
        widens="bfloat16" in _dtypes(question).values(),
    )  # fmt: skip


def _place(index: Sequence[Any]) -> str:
    return f"np.s_[{', '.join(map(str, index))}]" if index else "()"


@dataclass(frozen=True)
class _Operation:
    """An op in an adapter: the text of its function, the names that it takes (None: any), its main
    output, and whether it returns several."""

    name: str
    text: str
    takes: frozenset[str] | None
    main: str
    several: bool


def _operation(source: str, op: str) -> _Operation | None:
    """The op of the adapter with this source."""
    body = ast.parse(source).body
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    assigned = [node for node in body if isinstance(node, ast.Assign)]
    for table in [node.value for node in assigned if ast.unparse(node.targets[0]) == "OPS"]:
        assert isinstance(table, ast.Dict)
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == op and isinstance(value, ast.Tuple):
                main = ast.literal_eval(value.elts[0])
                return _function(op, main, value.elts[1], functions, source)
    return None


def _function(
    op: str,
    main: str,
    function: ast.expr,
    functions: Mapping[str, ast.FunctionDef],
    source: str,
) -> _Operation | None:
    helpers = _called(function, functions)
    texts = [ast.get_source_segment(source, node) or "" for node in helpers]
    parts = [part for node in helpers for part in ast.walk(node)]
    returned = [part.value for part in parts if isinstance(part, ast.Return)]
    name = op
    if isinstance(function, ast.Lambda):
        body = ast.unparse(function.body)
        texts.append(f"def {op}({ast.unparse(function.args)}):\n    return {body}")
    elif isinstance(function, ast.Call):
        texts.append(f"{op} = {ast.unparse(function)}")
    elif isinstance(function, ast.Name) and function.id in functions:
        name = function.id
    else:
        return None
    several = any(isinstance(value, ast.Dict | ast.DictComp) for value in returned)
    arguments = getattr(functions.get(name, function), "args", None)
    takes = None
    if isinstance(arguments, ast.arguments) and arguments.kwarg is None:
        takes = frozenset(argument.arg for argument in (*arguments.args, *arguments.kwonlyargs))
    return _Operation(name, "\n\n\n".join(texts), takes, main, several)


def _called(node: ast.AST, functions: Mapping[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The adapter's functions that the node calls, directly or indirectly."""
    called: set[str] = set()
    pending = [node]
    while pending:
        names = {
            name_node.id for name_node in ast.walk(pending.pop()) if isinstance(name_node, ast.Name)
        }
        pending += [functions[name] for name in (names & functions.keys()) - called]
        called |= names & functions.keys()
    return [function for name, function in functions.items() if name in called]


def _imports(source: str, framework: str, text: str) -> list[str]:
    """The adapter's imports that the script uses."""
    lines = {"import numpy as np", _PLUMBING[framework].module}
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom) and any(
            (alias.asname or alias.name.split(".")[0]) in used for alias in node.names
        ):
            lines.add(ast.unparse(node))
    return sorted(lines, key=lambda line: (line.startswith("from"), line))


def _settings(environment: Mapping[str, Any]) -> list[str]:
    settings = environment.get("settings") or {}
    # No process has a variable with a null character or an = in its name.
    variables = {
        key: value
        for key, value in settings.items()
        if key != key.lower() and "=" not in key and "\0" not in f"{key}{value}"
    }
    flags = {key: value for key, value in settings.items() if key == key.lower()}
    # On one line each, as comments: text from a file must not become code.
    lines = [
        f"# {clipped(f'Measured with the flag {key} = {value}.', 200)}"
        for key, value in flags.items()
    ]
    if variables:
        lines.append("import os")
        lines += [f"os.environ[{key!r}] = {str(value)!r}" for key, value in variables.items()]
    return lines


def _dtypes(question: Mapping[str, Any]) -> dict[str, str]:
    """The dtype of each input, or "low". If the arrays are absent: as `kinds` says, else the
    question's format."""
    kinds, inputs = question.get("kinds", {}), question["inputs"] or {}
    kinds = {n: kinds.get(n, question["format"]) for n in question["shapes"]}
    stored = {name: array["dtype"] for name, array in inputs.items()}
    return kinds | {n: dtype if dtype in _STORAGE else "low" for n, dtype in stored.items()}


def _tensor(plumbing: _Plumbing, name: str, dtype: str, device: str) -> str:
    if dtype.startswith("float8"):
        return plumbing.float8.format(a=name, dtype=dtype, device=repr(device))
    if dtype == "bfloat16":
        return plumbing.bfloat16.format(a=f"widened({name})", device=repr(device))
    return plumbing.tensor.format(a=name, device=repr(device))


def _call(
    question: Mapping[str, Any], plumbing: _Plumbing, op: _Operation, operands: Sequence[str]
) -> list[str]:
    # A param that the function does not take has the op's usual value, or there were no answer.
    usual = set(question.get("usual", ())) - (op.takes or set(question["params"]))
    given = {key: value for key, value in question["params"].items() if key not in usual}
    params = [f"{key}={_param(value)}" for key, value in given.items()]
    arguments = ", ".join([*[f"{name}={name}" for name in operands], *params])
    call = f"{op.name}({arguments})" + (f'["{op.main}"]' if op.several else "")
    if question["direction"] == "forward":
        whole = f"{op.name}({arguments})"
        return [f"outputs = {whole}" if op.several else f'outputs = {{"{op.main}": {whole}}}']
    operands = [name for name in operands if name in question.get("leaves", operands)]
    leaves = ", ".join(operands)
    lines = []
    if plumbing.leaf:
        lines += [f"for leaf in ({leaves},):", f"    {plumbing.leaf}"]
        lines.append(f"{op.main} = {call}")
    gradients = plumbing.gradients.format(
        y=op.main, leaves=leaves, dy=f"d{op.main}", function=f"lambda {leaves}: {call}"
    )
    names = ", ".join(f'"d{name}"' for name in operands)
    return [*lines, f"gradients = {gradients}", f"outputs = dict(zip(({names},), gradients))"]


def _param(value: Any) -> str:
    return repr(tuple(value) if isinstance(value, list) else value)


def _cotangent(question: Mapping[str, Any]) -> str:
    """The incoming gradient: the first of backward's inputs."""
    return str(next(iter(question["shapes"])))


def script_parts(
    answer: Record,
    kernels: list[ExplainedKernel],
    words: Texts,
    sources: Mapping[str, str],
    room: int,
) -> list[str]:
    """The scripts that fit into a comment, in order; the first in any case."""
    question = answer["evidence"]["question"]
    environments = answer["evidence"].get("environment") or {}
    texts: dict[str, str] = {}
    for kernel in kernels:
        environment = environments.get(kernel.name) or {}
        framework = str(environment.get("framework") or framework_of(kernel.name))
        text = (
            script(question, framework, sources[framework], environment)
            if framework in sources
            else ""
        )
        if text:
            texts[framework] = text
    titled = {_title(name, words): text for name, text in texts.items()}
    if not titled:
        titled[words["script_blank"]] = blank_script(question)
    note = _note(question, words)
    parts: list[str] = []
    left_out: list[str] = []
    for (title, text), name in zip(titled.items(), texts or titled, strict=True):
        body = "\n\n".join(part for part in (note, f"```python\n{text}```") if part)
        part = folded(title, body)
        if parts and sum(map(len, parts)) + len(part) > room:
            left_out.append(name)
        else:
            parts.append(part)
    if left_out:
        parts.append(words("script_left_out", frameworks=", ".join(left_out)))
    return parts


def _title(framework: str, words: Texts) -> str:
    key = "script_numpy" if framework == "numpy" else "script"
    return words(key, framework=escaped(framework))


def _note(question: Record, words: Texts) -> str:
    """The note about inputs that a script cuts or does not hold."""
    if question["inputs"] is None:
        return words["script_large"]
    if question["whole"] or not question["elements"]:
        return ""
    first = question["elements"][0]
    place = place_of(first["output"], first["index"])
    return words("script_cut", place=f"`{place}`")
