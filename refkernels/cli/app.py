"""The command-line app, assembled from the modules beside this one; each is a command.

`reporting` formats what the commands print.
"""

from typing import Annotated

import typer

from refkernels.cli import (
    align,
    bisect,
    compare,
    env,
    explain,
    gallery,
    measure,
    ops,
    probe,
    report,
    reveal,
    schema,
    sweep,
    tolerances,
    warm,
)
from refkernels.cli.shared.endings import Commands

app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    name="refkernels",
    help="How far is each framework from the truth, in ULP, and is that rounding?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import refkernels

        typer.echo(refkernels.__version__)
        raise typer.Exit


app.command()(measure.measure)
app.command()(sweep.sweep)
app.command()(explain.explain)
app.command()(probe.probe)
app.command()(reveal.reveal)
app.command()(align.align)
app.command()(gallery.gallery)
app.command()(ops.ops)
app.command()(tolerances.tolerances)
app.command()(warm.warm)
app.command()(report.report)
app.command()(compare.compare)
app.command()(bisect.bisect)
app.command()(schema.schema)
app.add_typer(env.app, name="env")
