"""All rules of the families, and the edits that they propose of a program."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from refkernels.contexts.graph import Edits, Graph, Node, Replacement, apply
from refkernels.diagnosis.edits import (  # noqa: F401  (each enters its rules)
    arithmetic,
    exponentials,
    indices,
    reductions,
    selections,
    terms,
)
from refkernels.diagnosis.edits.catalogue import RULES, Edit, Program, Proposal

_BY_USE = ("term", "function", "gradient", "arithmetic")
_LOOP = 8  # places, as of a loop's steps
_WITH_ARRAYS = ("pick", "broadcast", "scatter_add", "array", "truth", "input")


def edits_of(
    program: Program, kinds: Container[str] | None = None, more: Iterable[Edit] = ()
) -> list[Edit]:
    """Every edit that the rules propose, or those of some kinds; and those that are `more`."""
    edits = [
        Edit(kind, family, *Proposal(*proposal))
        for kind, family, propose in RULES
        if kinds is None or kind in kinds
        for proposal in propose(program)
    ]
    edits, everywhere = _everywhere([*edits, *more])
    parts, every_part = _everywhere([p for edit in edits for p in _at_one_use(program, edit)])
    seen, every = Counter[Hashable](), [*edits, *everywhere, *parts, *every_part]
    for edit in every:
        edit.number = seen[identity := edit.identity(program)]
        seen[identity] += 1
    # What a term left out says as well, another variable says last.
    return sorted(every, key=lambda edit: edit.family == "variable")


def again(edit: Edit, program: Program, graph: Graph, more: Iterable[Edit] = ()) -> Edits:
    """The edit of a program in another graph of the same formula; of which `more` are known."""
    other, same = Program(graph), (edit.identity(program), edit.number)
    alike = (e for e in edits_of(other, {edit.kind}, more) if (e.identity(other), e.number) == same)
    return next((edit.changes for edit in alike), {})


def _everywhere(edits: list[Edit]) -> tuple[list[Edit], list[Edit]]:
    """The edits, which know how many places are alike; and those at all places that are alike.
    Arithmetic is alike in all steps of a loop, whatever they are computed from."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    looks_of = functools.cache(lambda node, depth: tuple(_looks(node, depth)))
    for k, edit in enumerate(edits):
        edited = next(iter(edit.changes)) if "use" in edit.details else edit.place
        change = edit.changes.get(edited)
        mine, theirs = edit.place.operands, change.operands if change else ()
        how = [item for item in edit.details.items() if not isinstance(item[1], Node)]
        places = [mine.index(operand) for operand in theirs if operand in mine]
        user = [edit.details["use"]] if "use" in edit.details else []
        for depth in (1, 0) if edit.family == "arithmetic" else (1,):
            looks = [looks_of(node, depth) for node in (edit.place, *user)]
            key = depth, edit.kind, *map(str, how), *places * depth, *looks
            alike.setdefault(key, []).append(k)
    for (depth, *_), same in alike.items():
        for k in same if depth else ():
            edits[k].alike = len({edits[k].place for k in same})
    everywhere = []
    for same in {tuple(s): s for key, s in alike.items() if key[0] or len(s) > _LOOP}.values():
        there = {edits[k].place for k in same}
        at = {node: change for k in same for node, change in edits[k].changes.items()}
        apart = len(at) == sum(len(edits[k].changes) for k in same)
        if 1 < len(there) == len(same) and apart and all(_is_of_a_part(edits[k]) for k in same):
            details = {**edits[same[0]].details, "every": len(same)}
            everywhere.append(replace(edits[same[0]], changes=at, details=details, alike=1))
    return edits, everywhere


def _is_of_a_part(edit: Edit) -> bool:
    """Whether it edits its place alone, as one of several users may read it."""
    return edit.family in _BY_USE and ("use" in edit.details or list(edit.changes) == [edit.place])


def _looks(node: Node, depth: int = 1) -> Iterator[Any]:
    """What a place and its operands are, whichever elements they read."""
    anywhere = node.op in ("move", "input", "truth", "array")
    yield node.op if anywhere else (node.op, str(node.option))
    yield node.shape
    for operand in node.operands if depth else ():
        yield from _looks(operand, depth - 1)


def _at_one_use(program: Program, edit: Edit) -> Iterator[Edit]:
    """The edit where one of several users of its place reads it, and as it was for the others."""
    if "use" in edit.details or not _is_of_a_part(edit):
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
        yield replace(edit, changes={copy: moved, user: applied}, details=details)
