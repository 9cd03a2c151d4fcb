"""`refkernels tolerances`: the atol and rtol that a proven bound allows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated

import typer

from refkernels.cli.shared import options
from refkernels.cli.shared.case import read_case, tensors_of
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.wording import option


def tolerances(
    case_or_op: options.CaseOrOp = None,
    oracle: options.Oracle = None,
    inputs: options.Inputs = None,
    shape: Annotated[list[str] | None, option("tolerances.shape")] = None,
    dtype: options.Dtype = "float32",
    param: options.Params = None,
    direction: options.DirectionName = None,
    seed: options.DrawSeed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Print the least atol and rtol that pass every right kernel.

    They are those of allclose, and follow from the rounding bound on these inputs. Ends with status
    2 if no tolerance is right.
    """
    from dataclasses import asdict

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from refkernels import registry
    from refkernels.arithmetic import formats
    from refkernels.judging.challenges import FAMILIES, Drawer
    from refkernels.testing import tolerances as tolerances_of

    case_or_op = options.case_or_oracle(case_or_op, oracle)
    with refusing():
        shapes = _shapes(shape or (), {text.partition("=")[0] for text in inputs or ()})
        if (kind := formats.get(dtype).dtype) is None:
            raise ValueError(f"{dtype} is not a format of arrays.")
        drawn = {name: np.zeros(axes, kind) for name, axes in shapes.items()}
        with tensors_of([], 120.0) as tensors:
            case = read_case(
                case_or_op, inputs or [], [], param or [], direction, tensors, drawn, oracle
            )
        case.inputs.update(drawn)
        op = registry.get(case.op)
        if drawn and not shapes.keys() - set(op.takes(case.direction)):
            rng = np.random.default_rng(seed)
            drawers = {way: Drawer(op, way, dtype) for way in op.directions}
            filled = drawers[case.direction].filled(FAMILIES["typical"], rng, shapes)
            positive = {name for drawer in drawers.values() for name in drawer.roles.positive}
            case.inputs.update({n: abs(a) if n in positive else a for n, a in filled.items()})
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


def _shapes(texts: Sequence[str], from_files: set[str]) -> dict[str, tuple[int, ...]]:
    """Those of --shape; `from_files`: the names of --input. Raises ValueError (one sentence)."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, axes = options.read_lengths("--shape", text, "x=32,768", least=0)
        if math.prod(axes) > options.MOST_ELEMENTS:
            raise ValueError(f"--shape {text!r} has more than {options.MOST_ELEMENTS:,} elements.")
        if name in from_files or name in shapes:
            raise ValueError(f"{name} is given twice.")
        shapes[name] = axes
    return shapes
