"""Two formulas as one: some outputs, or some elements, of the one, and the rest of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from refkernels.diagnosis.problem import Array
from refkernels.ops.formula import Formula, several


def filled(formula: Formula, right: Formula, wanted: list[bool]) -> Formula:
    """The formula, with the right outputs where it gives none, or another shape to one that is not
    wanted."""

    def outputs(xp: Any, /, **arguments: Any) -> Any:
        both = (several(part(xp, **arguments)) for part in (formula, right))
        pairs = zip(*both, wanted, strict=False)
        return tuple(part if here and part is not None else whole for part, whole, here in pairs)

    return outputs


def in_block(formula: Formula, right: Formula, masks: Sequence[Array | None]) -> Formula:
    """The formula where an output's mask holds, and the right one elsewhere."""

    def outputs(xp: Any, /, **arguments: Any) -> Any:
        both = (several(part(xp, **arguments)) for part in (formula, right))
        return tuple(
            whole if mask is None or part is None else xp.where(mask, part, whole)
            for part, whole, mask in zip(*both, masks, strict=False)
        )

    return outputs
