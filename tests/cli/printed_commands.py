"""Finds the commands that pages, sentences and docs print, and runs them as they are printed."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from packaging.version import Version
from typer.testing import CliRunner

from refkernels.arithmetic import jit
from refkernels.cli.app import app
from refkernels.diagnosis import casefile
from refkernels.frameworks import catalog, environments, home, process
from refkernels.frameworks.catalog import Spec
from refkernels.frameworks.environments import Interpreter
from refkernels.runs.sweeps import WorkerPool

REAL = ("torch", "paddle", "oneflow", "mindspore", "jax", "onnxruntime", "tensorflow")
RELEASED = [Version("1.9.0"), Version("2.13.0")]  # as the index may list them
# What a reader puts in the place of a word in capitals.
PLACEHOLDERS = {
    "DIR": "made", "NAME": "acos-at-one", "PYTHON": sys.executable, "OP": "sin",
    "CASE.npz": "case.npz", "ANOTHER": "torch", "x=...": "x=x.npy", "OLD": "made", "NEW": "made",
}  # fmt: skip
# What an f-string's field holds, by its source; others hold a framework's name.
FIELDS = {
    "spec": "torch==2.13.0+cpu", "self.spec": "torch==2.13.0+cpu", "version": "2.13.0+cpu",
    "key": "torch", "spec.name": "torch", "name": "torch",
}  # fmt: skip
_INLINE = re.compile(r"`(refkernels(?: [^`\n]+)?)`")
_ESCAPE = re.compile(r"\\([^A-Za-z0-9\s])")
_LINE = re.compile(r"^\s*(?:\$ )?(refkernels .*?)(?:\s+#\s.*)?\s*$")


class Reached(BaseException):
    """The command has been parsed and checked, and is about to start what is costly."""


def in_markdown(text: str) -> list[str]:
    """Those of inline code, fenced and indented blocks; a backslash goes on on the next line."""
    commands, fenced = [], False
    for line in text.replace("\\\n", " ").splitlines():
        fenced ^= line.lstrip().startswith("```")
        if (fenced or line.startswith("    ")) and (match := _LINE.match(line)):
            commands.append(match[1])
        else:
            commands += in_sentences(_ESCAPE.sub(r"\1", line))
    return commands


def in_sentences(text: str) -> list[str]:
    """Those between backticks."""
    return [command for command in _INLINE.findall(text) if "{" not in command]


def in_page(html: str) -> list[str]:
    """Those of <code> and <pre>, and those between backticks."""
    reader = _Code()
    reader.feed(html)
    lines = "".join(reader.code).splitlines()
    return [m[1] for line in lines if (m := _LINE.match(line))] + in_sentences("".join(reader.text))


class _Code(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.depth, self.code, self.text = 0, [""], [""]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.depth += tag in ("code", "pre")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("code", "pre"):
            self.depth -= 1
            self.code.append("\n")

    def handle_data(self, data: str) -> None:
        (self.code if self.depth else self.text).append(data)


def in_source(path: Path) -> Iterator[str]:
    """Those of the strings of a Python file, f-strings with a likely value in each field."""
    source = path.read_text(encoding="utf-8")
    if "`refkernels" not in source:
        return
    tree = ast.parse(source)
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
              for part in ast.walk(node) if part is not node}  # fmt: skip
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from in_sentences(" ".join(node.value.split()))
        elif isinstance(node, ast.JoinedStr):
            yield from in_sentences("".join(_rendered(part) for part in node.values))


def _rendered(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return FIELDS.get(ast.unparse(part.value), "torch")
    return str(part.value) if isinstance(part, ast.Constant) else ""


def words_of(command: str) -> list[str]:
    """The words after `refkernels`, as a shell reads them, with something in each placeholder."""
    words = shlex.split(command, comments=True)[1:]
    filled = [PLACEHOLDERS.get(word, word).replace("==VERSION", "==1.0") for word in words]
    for place, word in enumerate(filled):
        if words[place - 1 : place + 1] == ["--out", "DIR"]:
            filled[place] = "new"
        if word == "...":
            filled[place] = {"--input": "x=x.npy", "--output": "y=y.npy"}[filled[place - 1]]
    return [str(Path(word).expanduser()) if word.startswith("~") else word for word in filled]


def stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that docs speak of; the real frameworks seem to be installed, and
    starting one, installing one, sweeping and compiling everything raise `Reached`."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(jit._root().parent))  # compiled kernels stay in use
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("REFKERNELS_HOME", str(folder / "home"))
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    arrays = {"x": x, "weight": x[:3], "bias": x[0, :3], "y": np.sin(x)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    case = casefile.CaseFile("sin", "forward", {"x": x}, {"mine": {"y": np.sin(x)}})
    casefile.save(folder / "case.npz", case)
    qa = {"id": "1", "question": "?", "answers": [{"text": "yes", "answer_start": 0}]}
    squad = {"data": [{"paragraphs": [{"context": "yes", "qas": [qa]}]}]}
    (folder / "dev-v1.1.json").write_text(json.dumps(squad), encoding="utf-8")
    for name in "ab":
        (folder / f"{name}.json").write_text(json.dumps({"1": "yes"}), encoding="utf-8")
        (folder / f"{name}.txt").write_text("1e-3\n")  # learning rates
    printed = "x = tensor([[1., 2., 3.]])\ny = tensor([[0.0900, 0.2447, 0.6652]])\n"
    (folder / "thread.txt").write_text(printed, encoding="utf-8")
    (folder / "made").mkdir()
    (folder / "made" / "records.jsonl").touch()
    functions = ("layernorm", "fast_ln", "my_gelu", "my_sum", "scaled_matmul", "cast")
    kernels = "".join(f"def {name}(x):\n    return x\n" for name in functions)
    for name in ("my_kernels.py", "triton_ln.py", "libmine.so"):
        (folder / name).write_text(kernels, encoding="utf-8")
    (folder / "generated").mkdir()
    for subfolder in ("made", "generated"):
        (folder / subfolder / "softmax.py").write_text("def softmax(x):\n    return x\n")
    cheats = folder / "tests" / "judge" / "cheats"
    cheats.mkdir(parents=True)
    (cheats / "functions.py").write_text("def tanh_for_erf_gelu(x):\n    return x\n")
    for name in ("task.py", "new.py"):
        (folder / name).touch()
    python = folder / "gpu-venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    furnish(folder)
    find_interpreter = environments.find

    def find(name: str | Spec, machine: str = "") -> Interpreter:
        spec = catalog.get(name)
        if spec.name in REAL:
            return Interpreter(spec, sys.executable, "managed", spec.version)
        return find_interpreter(spec, machine)

    def worker(self: Any, interpreter: Interpreter, environment: Any, slowdown: int = 1) -> None:
        if interpreter.spec.name in REAL or interpreter.spec.framework.kernel is not None:
            raise Reached
        started(self, interpreter, environment, slowdown)

    from refkernels.runs import sweeps

    started: Callable[..., None] = process.WorkerProcess.__init__
    monkeypatch.setattr(environments, "find", find)
    monkeypatch.setattr(process.WorkerProcess, "__init__", worker)
    monkeypatch.setattr("refkernels.frameworks.creation.build", reach)
    monkeypatch.setattr("refkernels.frameworks.emulation.build", reach)
    monkeypatch.setattr("refkernels.frameworks.released._released", lambda spec: RELEASED)
    monkeypatch.setattr("refkernels.cli.warm._warm_all", reach)
    monkeypatch.setattr("refkernels.frameworks.cells.Cell.__init__", reach)
    monkeypatch.setattr("refkernels.judging.tasks.read", reach)
    monkeypatch.setattr("refkernels.alignment.align", reach)
    monkeypatch.setattr("refkernels.profiling.program.of_file", reach)
    monkeypatch.setattr("refkernels.alignment.run.runs_in", lambda folder: (folder,))
    monkeypatch.setattr("refkernels.cli.sweep._start", lambda *arguments: None)
    monkeypatch.setattr("refkernels.runs.sweeps.run._describe", reach)
    monkeypatch.setattr(sweeps, "Processes", NoPool)
    monkeypatch.setattr(sweeps, "Dask", NoPool)


def furnish(folder: Path) -> None:
    """A named torch and a managed one, for what has been removed is not removed again."""
    python = folder / "gpu-venv" / "bin" / "python"
    home.write_named({"torch": home.NamedEnvironment(str(python), "2.13.0+cpu")})
    for name in ("torch-2.13.0", "torch@aarch64-2.10.0"):
        (folder / "home" / "environments" / name).mkdir(parents=True, exist_ok=True)


def reach(*arguments: Any, **options: Any) -> None:
    raise Reached


class NoPool(WorkerPool):
    """In the place of a sweep's processes: no work is done."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(1)


def run(command: str) -> str:
    """How far a command ran: "mention" (the bare name of one that takes more), "start" (`Reached`)
    or "end". Raises AssertionError where it is refused, or is not a command."""
    words = words_of(command)
    try:
        result = CliRunner().invoke(app, words)
    except Reached:
        # Whoever stops a run leaves a journal: the next command finds the folder in use.
        out = Path(words[words.index("--out") + 1]) if "--out" in words else Path(words[0])
        for name in ("journal.jsonl", "sweep-journal.jsonl"):
            if out.is_dir():
                (out / name).touch()
        return "start"
    if result.exit_code == 2 and all(word.isalpha() for word in words) and _is_name(words):
        return "mention"
    assert result.exit_code in (0, 1), f"{command}\n{result.output}"
    fault = result.exception
    if fault is not None and not isinstance(fault, SystemExit):
        raise AssertionError(f"{command} ended in a traceback") from fault
    return "end"


def _is_name(words: list[str]) -> bool:
    """Whether this is the name of a command or of a group, without what it takes."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word)
    return command is not None
