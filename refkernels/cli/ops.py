"""`refkernels ops`: the ops that can be measured and explained."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import AsJson
from refkernels.cli.shared.wording import argument
from refkernels.records.words import SCHEMA

_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}


def ops(
    names: Annotated[list[str] | None, argument("ops.names", autocompletion=completion.ops)] = None,
    as_json: AsJson = False,
) -> None:
    """List the ops: their signatures, and what frameworks lack."""
    with refusing():
        rows = op_rows(names)
    if as_json:
        typer.echo(json.dumps({"schema": SCHEMA, "kind": "ops", "ops": rows}))
    else:
        width = shutil.get_terminal_size().columns
        for row in rows:
            typer.echo(textwrap.fill(_signature(row), width, subsequent_indent="    ", **_WHOLE))
        typer.echo(textwrap.fill("[name]: may be left out. -> outputs; gradients.", width))


def _signature(row: dict[str, Any]) -> str:
    """`rms_norm(x, [weight], eps=1e-05) -> y; dx, dweight (not in oneflow, libm)`."""
    inputs = [f"[{name}]" if name in row["optional"] else name for name in row["inputs"]]
    params = [name if v is None else f"{name}={v}" for name, v in row["params"].items()]
    outputs = "; ".join(filter(None, map(", ".join, (row["outputs"], row["backward"]["outputs"]))))
    lacking = [name for name, reason in row["frameworks"].items() if reason is not None]
    missing = f" (not in {', '.join(lacking)})" if lacking else ""
    return f"{row['op']}({', '.join([*inputs, *params])}) -> {outputs}{missing}"


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
