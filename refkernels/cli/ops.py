"""`refkernels ops`: what can be asked about."""

from __future__ import annotations

import json
from typing import Any

import typer

from refkernels.cli.shared.options import AsJson
from refkernels.records.words import SCHEMA


def ops(
    as_json: AsJson = False,
) -> None:
    """The ops: their inputs, outputs, params and dtypes, and which frameworks have them."""
    from rich.console import Console

    from refkernels.reporting.ops import op_table

    rows = op_rows()
    if as_json:
        typer.echo(json.dumps({"schema": SCHEMA, "kind": "ops", "ops": rows}))
    else:
        Console().print(op_table(rows))


def op_rows() -> list[dict[str, Any]]:
    """What the registry and the adapters' sources say of each op; no framework is started."""
    from refkernels import registry
    from refkernels.frameworks import adapters, catalog
    from refkernels.op import DTYPES

    rows = []
    for op in registry.ops().values():
        cases = op.cases()
        found = {dtype for case in cases for dtype in case.dtypes}
        missing = f"its adapter has no op named {op.name}"
        told = {one.name: adapters.ops_of(one.adapter) for one in catalog.frameworks()}
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
                "dtypes": [dtype for dtype in DTYPES if dtype in found],
                "cases": len(cases),
                # null where the framework has the op, else why not
                "frameworks": {name: of.get(op.name, missing) for name, of in told.items()},
            }
        )
    return rows
