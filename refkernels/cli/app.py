"""The command-line app, assembled from the modules beside this one; each is a command.

Typer takes milliseconds to read a command's options, so it reads them only when the command is
used; the list of commands needs only docstrings. `reporting` formats what the commands print.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from refkernels.cli import (
    align,
    bisect,
    compare,
    env,
    explain,
    gallery,
    judge,
    measure,
    ops,
    probe,
    profile,
    report,
    reveal,
    schema,
    sweep,
    tolerances,
    warm,
)
from refkernels.cli.shared.endings import Commands

_FUNCTIONS = (
    measure.measure,
    sweep.sweep,
    explain.explain,
    probe.probe,
    reveal.reveal,
    align.align,
    profile.profile,
    gallery.gallery,
    ops.ops,
    tolerances.tolerances,
    judge.judge,
    warm.warm,
    report.report,
    compare.compare,
    bisect.bisect,
    schema.schema,
)


class _LazyCommands(Mapping[str, Any]):
    """The commands by name, in the order of the help; each is built on first use."""

    def __init__(self) -> None:
        self._functions = {function.__name__: function for function in _FUNCTIONS}
        self._used: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._used:
            group = env.app if name == "env" else typer.Typer(add_completion=False, **_PLAIN)
            if name != "env":
                group.command()(self._functions[name])
            self._used[name] = get_command(group)
        return self._used[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._functions, "env"])

    def __len__(self) -> int:
        return len(self._functions) + 1


class _Refkernels(Commands):
    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.commands: Any = _LazyCommands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command: the beginning of its docstring."""
        help = {function.__name__: inspect.getdoc(function) for function in _FUNCTIONS} | {
            "env": env.HELP
        }
        commands: dict[str, Any] = {
            name: TyperCommand(name, help=text) for name, text in help.items()
        }
        TyperGroup(commands=commands).format_commands(ctx, formatter)


_PLAIN: Any = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
app = typer.Typer(
    cls=_Refkernels,
    name="refkernels",
    help="How far is each framework from the truth, in ULP, and is that rounding?",
    no_args_is_help=True,
    **_PLAIN,
)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import refkernels

        typer.echo(refkernels.__version__)
        raise typer.Exit
