"""`refkernels env`: the frameworks' own interpreters."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from refkernels.cli.shared import completion
from refkernels.cli.shared.endings import refuse, refusing
from refkernels.cli.shared.options import AsJson
from refkernels.cli.shared.wording import argument, option
from refkernels.records.words import SCHEMA

_WIDE = 1000
Machine = Annotated[str, option("Machine")]
env = typer.Typer(
    name="env",
    help="The frameworks' own interpreters: list, create, add, remove.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@env.command("list")
def list_environments(
    as_json: AsJson = False,
) -> None:
    """List the frameworks that can be measured here, and how to get the others."""
    from rich.console import Console

    from refkernels import reporting
    from refkernels.frameworks import environments

    with refusing():
        listing = environments.listing()
    if as_json:
        lines = [asdict(line) for line in listing]
        typer.echo(json.dumps({"schema": SCHEMA, "kind": "environments", "environments": lines}))
    else:
        # Wide enough for every line: a wrapped path or command cannot be copied.
        Console(width=_WIDE).print(reporting.environment_table(listing))


@env.command("create")
def create_environments(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME[==VERSION]", autocompletion=completion.frameworks),
    ],
    keep_going: Annotated[bool, option("env create.keep_going", "--keep-going")] = False,
    machine: Machine = "",
) -> None:
    """Install frameworks, each into an environment of its own (0.5 to 4.3 GB each).

    Ends with status 1 if one cannot be made, 2 if a name is not that of a framework.
    """
    from refkernels.frameworks import catalog, emulation, environments

    with refusing():  # before the first installation, which takes minutes
        emulation.foreign(machine)
        for name in names:
            catalog.get(name)
    outcomes = environments.create_all(names, typer.echo, machine)
    failures = [outcome for outcome in outcomes if outcome.reason is not None]
    if failures and not keep_going:
        raise typer.Exit(1)


@env.command("add")
def add_environment(
    name: Annotated[
        str,
        argument("env add.name", autocompletion=completion.frameworks),
    ],
    python: Annotated[str, argument("env add.python")],
) -> None:
    """Measure NAME in an interpreter of your own, here or on another machine.

    Starts the interpreter and imports NAME first; ends with status 2 if that fails.
    """
    from refkernels.frameworks import addition

    with refusing():
        added = addition.add(name, python)
    typer.echo(f"{name} will be measured in {added.python}, which has version {added.version}.")


@env.command("remove")
def remove_environment(
    name: Annotated[
        str, typer.Argument(metavar="NAME[==VERSION]", autocompletion=completion.frameworks)
    ],
    yes: Annotated[bool, option("env remove.yes", "--yes", "-y")] = False,
    machine: Machine = "",
) -> None:
    """Forget an interpreter of your own (undo `add`); if there is none, list the managed
    environments and delete them.

    Ends with status 1 if you answer no, 2 if there is nothing to remove.
    """
    from refkernels.frameworks import addition, environments

    with refusing():
        forgotten = None if machine else addition.forget(name)
        folders = environments.managed(name, machine)
        if forgotten is not None:
            typer.echo(f"Forgotten: {forgotten}")
            if folders:
                folder_names = ", ".join(map(str, folders))
                typer.echo(
                    f"Kept: {folder_names} (`refkernels env remove {name}` again deletes this)."
                )
            return
        if not folders:
            commands = " and ".join(
                f"`refkernels env remove {key}`" for key in addition.named(name)
            )
            refuse(
                f"no environment of {name} is kept here: see {commands or '`refkernels env list`'}."
            )
        if not yes:
            _confirm(name, folders)
        for folder in folders:
            environments.delete(folder)
            typer.echo(f"Deleted: {folder}")


def _confirm(name: str, folders: list[Path]) -> None:
    """Ask before managed environments are deleted; end with status 1 if the answer is no."""
    typer.echo("These environments will be deleted:", err=True)
    for folder in folders:
        typer.echo(f"  {folder}", err=True)
    try:
        agreed = typer.confirm("Delete?", err=True)
    except typer.Abort:
        typer.echo(err=True)
        refuse(f"nothing was deleted: `refkernels env remove {name} --yes` deletes without asking.")
    if not agreed:
        raise typer.Exit(1)
