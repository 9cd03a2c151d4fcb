"""One reported discrepancy: the question, the answers, the source, and our argument.

The file of an entry (JSON; numbers that are not finite as the strings "nan", "inf", "-inf"):

    title, source, reported    the thread's subject, its address, and the figures that it gives
    provenance                 the origin of inputs and outputs: digits of the thread, bits of a
                               recorded run, or a reconstruction and what it reproduces
    device, recorded           recorded: the device is not available, its answers are data
    op, direction, params      the question, as `explain` takes it
    inputs, outputs            by name, outputs first by kernel; see `_array` for the forms of an
                               array
    printed                    {kernel: {output: text}}: the digits in the thread, as which the
                               array must print
    thread                     the cause that the thread states, in its own terms
    expected                   {kernel: {verdict, cause}} and {"a | b": {cause}} for a difference
    argument                   why we disagree with the thread, or what it leaves open
    zh                         title, reported, thread, argument and origin in Chinese, if present
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
from refkernels.suggestion import did_you_mean, quoted

Array = npt.NDArray[Any]
_ARRAYS = ("inputs", "outputs")
_FOLDER = resources.files("refkernels.gallery") / "entries"


class EntryError(ValueError):
    """There is no such entry, or its file is malformed; the message says which."""


@dataclass(frozen=True)
class Entry:
    """One discrepancy; the module describes each field."""

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
    zh: dict[str, str] = field(default_factory=dict)

    def explain(self) -> Explanation:
        """The explanation of the kernels, and of each pair of them."""
        return explain(self.op, self.inputs, self.outputs, self.params, self.direction)

    def to_dict(self) -> dict[str, Any]:
        """The entry without its arrays, as strict JSON."""
        return {key: value for key, value in self.__dict__.items() if key not in _ARRAYS}


@cache
def names() -> tuple[str, ...]:
    """All entries, in alphabetical order."""
    files = (file.name for file in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in files if name.endswith(".json")))


def load(name: str) -> Entry:
    """The entry of that name. Raises EntryError for an unknown name, with the known ones, and
    TypeError for an argument that is not a string."""
    if not isinstance(name, str):
        raise TypeError(f"An entry's name is a string, not a {type(name).__name__}.")
    if name not in names():
        raise EntryError(f"The gallery has no entry {quoted(name)}: {did_you_mean(name, names())}.")
    content = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return parse(name, content)


def parse(
    name: str, content: Mapping[str, Any], arrays: Mapping[str, Array] | None = None
) -> Entry:
    """The entry with a file's content, and with the arrays of the entry's .npz unless others are
    given. Raises EntryError for a missing or unknown field."""
    plain = {key: value for key, value in content.items() if key not in _ARRAYS}
    arrays = _stored(name) if arrays is None else arrays
    question = _case(content["inputs"]) if "case" in content.get("inputs", {}) else None
    try:
        inputs = question or {
            key: _array(value, arrays, f"input.{key}") for key, value in content["inputs"].items()
        }
        outputs = {
            kernel: {
                key: _array(value, arrays, f"output.{kernel}.{key}")
                for key, value in by_output.items()
            }
            for kernel, by_output in content["outputs"].items()
        }
        return Entry(name=name, inputs=inputs, outputs=outputs, **plain)
    except (KeyError, TypeError) as error:
        raise EntryError(f"The gallery's entry {name} is not an entry: {error}.") from error


def _stored(name: str) -> dict[str, Array]:
    """The arrays of the entry's .npz; none if there is no such file."""
    file = _FOLDER / f"{name}.npz"
    if not file.is_file():
        return {}
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return dict(arrays)


def _case(content: Mapping[str, Any]) -> dict[str, Array]:
    """Rows of the inputs of a case of the registry: {"case": name, "dtype": "float32", "take":
    {input: [start, stop]}}."""
    name = str(content["case"])
    op = registry.get(name.split("/")[0])
    case = next((case for case in op.cases() if case.name == name), None)
    if case is None:
        raise EntryError(f"There is no longer a case {name!r}.")
    inputs, _ = case.build(content["dtype"])
    whole = {key: inputs[key] for key in op.inputs if key in inputs}
    cut = {key: inputs[key][slice(*rows)] for key, rows in content["take"].items()}
    return {**whole, **cut}


def _array(content: Any, arrays: Mapping[str, Array], place: str) -> Array:
    """An array: {"dtype", "values"}, or {"dtype", "arange": n, "shape"}, or "npz" for the array in
    the entry's own .npz with the name of its place, such as input.x or output.torch.y."""
    if content == "npz":
        return arrays[place]
    if "arange" in content:
        return np.arange(content["arange"]).astype(content["dtype"]).reshape(content["shape"])
    if np.dtype(content["dtype"]).kind == "i":
        return np.array(content["values"], content["dtype"])
    with np.errstate(over="ignore"):
        return np.array(content["values"], dtype=object).astype(np.float64).astype(content["dtype"])
