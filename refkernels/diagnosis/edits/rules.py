"""All rules of the families, and the edits that they propose of a program."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from refkernels.contexts.graph import Replacement, apply
from refkernels.diagnosis.edits import gradients, indices, reductions, selections, terms
from refkernels.diagnosis.edits.catalogue import RULES, Edit, Program, Proposal

FAMILIES = (terms, reductions, indices, selections, gradients)
_BY_USE = ("term", "function", "gradient")
_WITH_ARRAYS = ("pick", "broadcast", "scatter_add", "array", "truth", "input")


def edits_of(program: Program, kinds: Container[str] | None = None) -> list[Edit]:
    """Every edit that the rules propose, or those of some kinds."""
    edits = [
        Edit(kind, family, *Proposal(*proposal))
        for kind, family, propose in RULES
        if kinds is None or kind in kinds
        for proposal in propose(program)
    ]
    return edits + [part for edit in edits for part in _at_one_use(program, edit)]


def _at_one_use(program: Program, edit: Edit) -> Iterator[Edit]:
    """The edit where one of several users of its place reads it, and as it was for the others."""
    if edit.family not in _BY_USE or list(edit.changes) != [edit.place]:
        return
    users = program.users.get(edit.place, [])
    for user in users if len(users) > 1 else ():
        if user.op in _WITH_ARRAYS:
            continue
        copy = replace(edit.place)
        operands = tuple(copy if operand is edit.place else operand for operand in user.operands)
        own = edit.changes[edit.place]
        moved = own._replace(operands=tuple(copy if o is edit.place else o for o in own.operands))
        applied = Replacement(operands, lambda xp, *values, user=user: apply(user, xp, values))
        details = {**edit.details, "use": user}
        yield Edit(edit.kind, edit.family, edit.place, {copy: moved, user: applied}, details)
