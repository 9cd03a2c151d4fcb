"""The command-line app, assembled from the modules beside this one; each is a command.

Typer takes milliseconds to read a command's options, so it reads them only when the command is
used; the list of commands needs only docstrings. `reporting` formats what the commands print.
"""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from refkernels.cli.shared.endings import Commands
from refkernels.cli.shared.wording import option

_NAMES = (
    "measure", "sweep", "explain", "probe", "reveal", "align", "profile", "gallery", "ops",
    "tolerances", "judge", "warm", "report", "compare", "bisect", "schema", "env",
)  # fmt: skip


class _LazyCommands(Mapping[str, Any]):
    """The commands by name, in the order of the help; each is imported and built on first use."""

    def __init__(self) -> None:
        self._used: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._used:
            group = _named(name)
            if not isinstance(group, typer.Typer):
                function, group = group, typer.Typer(add_completion=False, **_PLAIN)
                group.command()(function)
            self._used[name] = get_command(group)
        return self._used[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


def _named(name: str) -> Any:
    """The function of a command, or the app of a group. Raises KeyError for another name."""
    if name not in _NAMES:
        raise KeyError(name)
    return getattr(import_module(f"refkernels.cli.{name}"), name)


class _Refkernels(Commands):
    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.commands: Any = _LazyCommands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command: the beginning of its docstring."""
        commands: dict[str, Any] = {}
        for name in _NAMES:
            named = _named(name)
            text = named.info.help if isinstance(named, typer.Typer) else inspect.getdoc(named)
            commands[name] = TyperCommand(name, help=text)
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
    version: Annotated[bool, option("about.version", "--version")] = False,
) -> None:
    if version:
        import refkernels

        typer.echo(refkernels.__version__)
        raise typer.Exit
