"""`refkernels tolerances`: the atol and rtol that a proven bound allows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from refkernels.cli.shared.case import read_case, tensors_of
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import (
    MOST_ELEMENTS,
    AsJson,
    CaseOrOp,
    DirectionName,
    DrawSeed,
    Dtype,
    Inputs,
    Names,
    Params,
    read_lengths,
)

if TYPE_CHECKING:
    from refkernels.op import Op


def tolerances(
    case_or_op: CaseOrOp,
    inputs: Inputs = None,
    shape: Annotated[
        Names | None,
        typer.Option(
            help="NAME=32,768: standard normal numbers in that shape (positive ones where the op "
            "needs them, whole ones for indices). Repeatable."
        ),
    ] = None,
    dtype: Dtype = "float32",
    param: Params = None,
    direction: DirectionName = None,
    seed: DrawSeed = 0,
    as_json: AsJson = False,
) -> None:
    """Print the smallest atol and rtol with which allclose passes every right kernel.

    They follow from the rounding bound on these inputs. Ends with status 2 if no tolerance is
    right.
    """
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from refkernels import registry
    from refkernels.testing import tolerances as tolerances_of

    with refusing():
        drawn = _drawn(shape or (), dtype, seed, {text.partition("=")[0] for text in inputs or ()})
        with tensors_of([], 120.0) as tensors:
            case = read_case(case_or_op, inputs or [], [], param or [], direction, tensors, drawn)
        case.inputs.update(_fitted(drawn, registry.get(case.op), dtype))
        allowed = tolerances_of(case.op, case.inputs, case.params, case.direction)
    if as_json:
        typer.echo(json.dumps({name: asdict(t) for name, t in allowed.items()}, allow_nan=False))
        return
    table = Table("output", "atol", "rtol", "ulp", box=None)
    for name, tolerance in allowed.items():
        table.add_row(name, f"{tolerance.atol:g}", f"{tolerance.rtol:g}", f"{tolerance.ulp:.3g}")
    console = Console()
    console.print(table)
    console.print("ulp: what they allow an element of median size, for these inputs only.")


def _drawn(shapes: Sequence[str], dtype: str, seed: int, from_files: set[str]) -> dict[str, Any]:
    """The arrays of --shape; `from_files`: those of --input. Raises ValueError (one sentence)."""
    import numpy as np

    from refkernels.arithmetic import formats

    format, rng = formats.get(dtype), np.random.default_rng(seed)
    if format.dtype is None:
        raise ValueError(f"{dtype} is not a format of arrays.")
    drawn: dict[str, Any] = {}
    for text in shapes:
        name, axes = read_lengths("--shape", text, "x=32,768", least=0)
        if math.prod(axes) > MOST_ELEMENTS:
            raise ValueError(f"--shape {text!r} has more than {MOST_ELEMENTS:,} elements.")
        if name in from_files or name in drawn:
            raise ValueError(f"{name} is given twice.")
        drawn[name] = rng.standard_normal(axes).astype(format.dtype)
    return drawn


def _fitted(drawn: dict[str, Any], op: Op, dtype: str) -> dict[str, Any]:
    """The drawn arrays as the op takes them: booleans, whole numbers below every length (they are
    classes, rows of a table, positions), and the absolute value of what is never negative."""
    import numpy as np

    from refkernels.judging.challenges import Drawer

    roles = [Drawer(op, way, dtype).roles for way in op.directions if drawn]
    positive = frozenset().union(*(role.positive for role in roles))
    least = min((length for array in drawn.values() for length in array.shape), default=1)
    fitted = {}
    for name, array in drawn.items():
        kind = op.kinds.get(name)
        if kind == "bool":
            fitted[name] = array > 0
        elif kind == "int":
            fitted[name] = np.arange(array.size, dtype=np.int64).reshape(array.shape) % max(
                least, 1
            )
        else:
            fitted[name] = np.abs(array) if name in positive else array
    return fitted
