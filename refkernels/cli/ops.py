"""`refkernels ops`: the ops that can be measured and explained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import AsJson
from refkernels.records.words import SCHEMA


def ops(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OP]...", help="All by default.", autocompletion=completion.ops),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the ops: their inputs, outputs, params and dtypes, and the frameworks that have them."""
    from rich.console import Console

    from refkernels.reporting.ops import op_table

    with refusing():
        rows = op_rows(names)
    if as_json:
        typer.echo(json.dumps({"schema": SCHEMA, "kind": "ops", "ops": rows}))
    else:
        console = Console()
        console.print(op_table(rows, console.width))


def op_rows(names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One row for each op, or each named one, from the registry and the adapters' sources; starts
    no framework. Raises ValueError for an unknown name."""
    from refkernels import registry
    from refkernels.frameworks import adapters, catalog
    from refkernels.op import DTYPES

    rows = []
    for op in map(registry.get, names or registry.ops()):
        cases = op.cases()
        used = {dtype for case in cases for dtype in case.dtypes}
        missing = f"its adapter has no op named {op.name}"
        reasons = {
            framework.name: adapters.ops_of(framework.adapter) for framework in catalog.frameworks()
        }
        rows.append(
            {
                "op": op.name,
                "inputs": list(op.inputs),
                "optional": list(op.optional),
                "outputs": list(op.outputs),
                "backward": {
                    "inputs": list(op.takes("backward")),
                    "outputs": list(op.gradients),
                },
                "params": dict(op.params),
                "dtypes": [dtype for dtype in DTYPES if dtype in used],
                "cases": len(cases),
                # null if the framework has the op, else the reason why not
                "frameworks": {
                    name: by_op.get(op.name, missing) for name, by_op in reasons.items()
                },
            }
        )
    return rows
