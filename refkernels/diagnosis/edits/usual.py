"""The usual faults of an op: those edits of its program that `names.json` marks as usual.

They need no search: they are tried on every output, on printed digits and by the judge, like the
faults that an op declares itself. A fault is found in the program of a few rows; its formula finds
its place again in the program of any arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from refkernels.contexts.graph import Node
from refkernels.diagnosis.edits import identities, names
from refkernels.diagnosis.edits.catalogue import XP, Edit, Program, program_of
from refkernels.diagnosis.edits.names import formula_of
from refkernels.diagnosis.edits.rules import again, edits_of
from refkernels.op import Direction, Op
from refkernels.ops import edits as editing
from refkernels.ops.edits import Rule
from refkernels.ops.formula import Fault
from refkernels.ops.formulas import Formulas
from refkernels.ops.readings import Reading

_SMALL = 1 << 12  # elements of the inputs of a case
_ROWS = 2  # of the program in which places are found


def faults_of(
    definition: Formulas | None,
    direction: Direction,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
) -> tuple[Fault, ...]:
    """The faults of a pass, those that the op declares first."""
    if definition is None:
        return ()
    declared = (fault for fault in definition.faults if getattr(fault, direction) is not None)
    return *declared, *_usual(definition, direction, inputs, params)


def faults_of_op(op: Op, direction: Direction) -> list[Fault]:
    """The faults of a pass: those that the op declares, and one of each usual cause on its small
    cases."""
    definition = op.definition
    if definition is None:
        return []
    usual: dict[str, Fault] = {}
    for case in op.cases():
        if "float32" in case.dtypes and direction in case.directions:
            inputs, params = case.build("float32")
            arrays = {name: inputs[name] for name in op.takes(direction) if name in inputs}
            if sum(np.size(array) for array in arrays.values()) <= _SMALL:
                for fault in _usual(definition, direction, arrays, {**op.params, **params}):
                    usual.setdefault(fault.cause, fault)
    return [*(f for f in definition.faults if getattr(f, direction)), *usual.values()]


def worded(edit: Edit) -> dict[str, Any]:
    """The details of an edit, formulas as text; of one at several places, the text of each."""
    details = {
        name: formula_of(value) if isinstance(value, Node) else value
        for name, value in edit.details.items()
    }
    if edit.details.get("part") in edit.changes and "every" in details:
        details["part"] = ", ".join(dict.fromkeys(map(formula_of, edit.changes)))
    return {**details, "formula": formula_of(edit.details.get("use", edit.place))}


def _usual(
    definition: Formulas, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> Iterator[Fault]:
    where = {"op": definition.name, "direction": direction}
    if not any(names.usual(where)):
        return
    question = definition.question(direction, inputs, params)
    rows = np.arange(min(question.rows, _ROWS))
    arguments = Reading(XP, lambda value: ()).arguments(question.take(rows), question.params)
    ways = {False: definition.of(direction)}
    if direction == "backward" and definition.derive is not None:
        ways[True] = definition.forward
    declared = {fault.cause for fault in definition.faults if getattr(fault, direction)}
    for derived, way in ways.items():
        where["pass"] = "forward" if derived else direction
        if not any(names.usual(where)):
            continue
        formula = next(iter(way.forms.values()))
        derive = definition.derive if derived else None
        try:
            program = program_of(formula, arguments, derive)
        except (ValueError, TypeError, IndexError):
            continue  # no graph holds it, or its arrays are others
        rules: list[tuple[dict[str, Any], Rule, Mapping[str, Any]]] = []
        for edit, entry in _named(program, where):
            rules.append((entry, functools.partial(again, edit, program), edit.details))
        unstable = _unstable(program, where)
        rules += [(entry, rule, {}) for entry, rule in unstable if entry["cause"] not in declared]
        for entry, rule, known in rules:
            changed = editing.edited(formula, rule)
            changed = changed if derive is None else derive(changed)
            forward, backward = (changed, None) if direction == "forward" else (None, changed)
            details = {name: known[name] for name in entry.get("details", ())}
            outputs = tuple(entry.get("outputs", ()))
            loses = entry["kind"] == identities.KIND
            yield Fault(entry["cause"], forward, backward, loses, details, outputs)


def _unstable(program: Program, where: Mapping[str, str]) -> Iterator[tuple[dict[str, Any], Rule]]:
    """The ways to write the program that have a usual name, each once."""
    named: set[str] = set()
    for identity in identities.identities(program):
        for entry in names.usual(where):
            told = {"formula": identity.text, **where}
            if names.fits(entry, identities.KIND, told) and entry["cause"] not in named:
                named.add(entry["cause"])
                yield entry, identities.taking(identity.kind, identity.number)


def _named(program: Program, where: Mapping[str, str]) -> Iterator[tuple[Edit, dict[str, Any]]]:
    entries = list(names.usual(where))
    edits = edits_of(program, {entry["kind"] for entry in entries})
    for edit in (edit for edit in edits if "use" not in edit.details):
        details = {**worded(edit), **where}
        entry = next((e for e in entries if names.fits(e, edit.kind, details)), None)
        if entry is not None:
            yield edit, entry
