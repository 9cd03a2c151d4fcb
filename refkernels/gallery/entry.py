"""One reported discrepancy: what was asked, what was answered, who said so, and what we say.

The file of an entry (JSON; numbers that are not finite as the strings "nan", "inf", "-inf"):

    title, source, reported    what the thread is, where, and the figures that it gives
    provenance                 where inputs and outputs come from: digits of the thread, bits of a
                               recorded run, or a reconstruction, and what that reproduces
    device, recorded           recorded: the device is not here, its answers are data
    op, direction, params      the question, as `explain` takes it
    inputs, outputs            by name, outputs by kernel first; see `_array` for the ways to write
                               an array
    printed                    {kernel: {output: text}}: the digits that the thread shows; the array
                               has to print so
    thread                     the cause that the thread states, in its own terms
    expected                   {kernel: {verdict, cause}} and {"a | b": {cause}} for a difference
    argument                   why we disagree with the thread, where we do, or what it leaves open
    consequence                "cosine_decay": the answers make a schedule; see `consequences`
    zh                         title, reported, thread and argument in Chinese, where there are such
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.diagnosis.explain import explain
from refkernels.diagnosis.explanation import Explanation
from refkernels.op import Direction
from refkernels.suggestion import instead, quoted

Array = npt.NDArray[Any]
_ARRAYS = ("inputs", "outputs")
_FOLDER = resources.files("refkernels.gallery") / "entries"


class EntryError(ValueError):
    """There is no such entry, or its file is not what an entry is; the message says which."""


@dataclass(frozen=True)
class Entry:
    """One discrepancy; see the module for what each part is."""

    name: str
    title: str
    source: str
    reported: str
    provenance: str
    device: str
    recorded: bool
    op: str
    direction: Direction
    params: dict[str, Any]
    inputs: dict[str, Array]
    outputs: dict[str, dict[str, Array]]
    thread: str
    expected: dict[str, dict[str, Any]]
    printed: dict[str, dict[str, str]] = field(default_factory=dict)
    argument: str = ""
    consequence: str = ""
    zh: dict[str, str] = field(default_factory=dict)

    def explain(self) -> Explanation:
        """What `explain` says of the kernels, and of each pair of them."""
        return explain(self.op, self.inputs, self.outputs, self.params, self.direction)

    def to_dict(self) -> dict[str, Any]:
        """What is told of the entry, without its arrays; strict JSON."""
        return {key: value for key, value in self.__dict__.items() if key not in _ARRAYS}


@cache
def names() -> tuple[str, ...]:
    """All entries, in alphabetical order."""
    files = (file.name for file in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in files if name.endswith(".json")))


def load(name: str) -> Entry:
    """The entry of that name. Raises EntryError for an unknown one, with the known names, and
    TypeError for what is no name."""
    if not isinstance(name, str):
        raise TypeError(f"An entry is asked for by its name, not by a {type(name).__name__}.")
    if name not in names():
        raise EntryError(f"The gallery has no entry {quoted(name)}: {instead(name, names())}.")
    told = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return parse(name, told)


def parse(name: str, told: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> Entry:
    """The entry of what a file tells, with the arrays of the entry's .npz unless others are given.
    Raises EntryError for a part that is missing or unknown."""
    plain = {key: value for key, value in told.items() if key not in _ARRAYS}
    arrays = _stored(name) if arrays is None else arrays
    question = _case(told["inputs"]) if "case" in told.get("inputs", {}) else None
    try:
        inputs = question or {
            key: _array(value, arrays, f"input.{key}") for key, value in told["inputs"].items()
        }
        outputs = {
            kernel: {key: _array(one, arrays, f"output.{kernel}.{key}") for key, one in by.items()}
            for kernel, by in told["outputs"].items()
        }
        return Entry(name=name, inputs=inputs, outputs=outputs, **plain)
    except (KeyError, TypeError) as error:
        raise EntryError(f"The gallery's entry {name} is no entry: {error}.") from error


def _stored(name: str) -> dict[str, Array]:
    """The arrays of the entry's .npz, none where there is no such file."""
    file = _FOLDER / f"{name}.npz"
    if not file.is_file():
        return {}
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as held:
        return dict(held)


def _case(told: Mapping[str, Any]) -> dict[str, Array]:
    """The inputs of a case of the registry, cut: {"case": name, "dtype": "float32", "take":
    {input: [first row, the one after the last]}}."""
    name = str(told["case"])
    op = registry.get(name.split("/")[0])
    case = next((case for case in op.cases() if case.name == name), None)
    if case is None:
        raise EntryError(f"There is no case {name!r} any more.")
    inputs, _ = case.build(told["dtype"])
    taken = {key: inputs[key][slice(*rows)] for key, rows in told["take"].items()}
    kept = {key: inputs[key] for key in op.inputs if key in inputs}
    return {**kept, **taken}


def _array(told: Any, arrays: Mapping[str, Array], place: str) -> Array:
    """An array: {"dtype", "values"}, or {"dtype", "arange": n, "shape"}, or "npz" for the array of
    the entry's own file that is called after its place, input.x or output.torch.y."""
    if told == "npz":
        return arrays[place]
    if "arange" in told:
        return np.arange(told["arange"]).astype(told["dtype"]).reshape(told["shape"])
    if np.dtype(told["dtype"]).kind == "i":
        return np.array(told["values"], told["dtype"])
    with np.errstate(over="ignore"):
        return np.array(told["values"], dtype=object).astype(np.float64).astype(told["dtype"])
