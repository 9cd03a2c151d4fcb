"""The command line: measure | sweep | explain | probe | reveal | gallery | report | ops | env ...

What it prints, `reporting` formats.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from refkernels.cli import env as env_command
from refkernels.cli import explain as explain_command
from refkernels.cli import gallery as gallery_command
from refkernels.cli import ops as ops_command
from refkernels.cli import probe as probe_command
from refkernels.cli import reveal as reveal_command
from refkernels.cli import sweep as sweep_command
from refkernels.cli import warm as warm_command
from refkernels.cli.shared import completion, severity
from refkernels.cli.shared.options import Commands, seconds

app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    name="refkernels",
    help="How far is each framework from the truth, in ULP, and is that rounding?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(env_command.app, name="env")


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import refkernels

        typer.echo(refkernels.__version__)
        raise typer.Exit


@app.command()
def measure(
    framework: Annotated[
        list[str] | None,
        typer.Option(
            help="torch, paddle==2.6.2, torch@OMP_NUM_THREADS=1, paddle:gpu:0, ...; all by "
            "default. Repeatable.",
            autocompletion=completion.frameworks,
        ),
    ] = None,
    op: Annotated[
        list[str] | None,
        typer.Option(help="All by default. Repeatable.", autocompletion=completion.ops),
    ] = None,
    dtype: Annotated[
        list[str] | None,
        typer.Option(
            help="float16, bfloat16, float32, float64. Repeatable.",
            autocompletion=completion.dtypes,
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="cpu, cuda, cuda:1, npu, ..., for names without a device; all by default."
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="A case's name; * stands for any part. Repeatable.",
            autocompletion=completion.cases,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for records, report and plots.")] = Path(
        "report"
    ),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: environment variable or framework flag."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(parser=seconds, help="Seconds that a framework may take for one answer."),
    ] = 120.0,
    show_list: Annotated[bool, typer.Option("--list", help="List the cases and stop.")] = False,
    fail_on: Annotated[str | None, severity.OPTION] = None,
) -> None:
    """Measure the frameworks against the certified oracles and write a report.

    Ends with status 1 where a framework failed on something (the report says on what) or an output
    is as bad as --fail-on, 2 where the question itself cannot be answered, 130 where it was
    stopped; else with 0, however wrong the numbers are.
    """
    from refkernels import measurement
    from refkernels.frameworks.catalog import FrameworkError

    severity.check(fail_on)
    try:
        plan = measurement.select(op or (), dtype or (), case or ())
    except ValueError as error:
        refuse(str(error))
    if show_list:
        _list(plan)
        return
    try:
        outcome = _measure(
            plan, out, framework, device, parse_settings(settings or []), resume, timeout
        )
    except (FrameworkError, measurement.StoreError) as error:
        refuse(str(error))
    except KeyboardInterrupt:
        typer.echo(f"Stopped; what is done is kept: add --resume to go on. ({out})", err=True)
        raise typer.Exit(130) from None
    _show(out)
    measured = [one for one in outcome.records if one["kind"] == "measurement"]
    judged = [
        (f"{one['framework']} {one['direction']} {one['dtype']} {one['case']['name']}", one)
        for one in measured
        if one["status"] == "ok"
    ]
    bad = severity.reached(fail_on, judged)
    if outcome.faults or (framework and outcome.missing) or bad:
        raise typer.Exit(1)


app.command()(sweep_command.sweep)
app.command()(explain_command.explain)
app.command()(probe_command.probe)
app.command()(reveal_command.reveal)
app.command()(gallery_command.gallery)
app.command()(ops_command.ops)
app.command()(warm_command.warm)


@app.command()
def report(
    directory: Annotated[
        Path, typer.Argument(help="A folder with records.jsonl, sweeps.jsonl or both.")
    ],
) -> None:
    """Make every table, plot and page again from the records."""
    swept = (directory / "sweeps.jsonl").exists()
    if (directory / "records.jsonl").exists() or not swept:
        _show(directory)
    if swept:
        show_sweeps(directory)


def _measure(
    plan: Any,
    out: Path,
    framework: list[str] | None,
    device: list[str] | None,
    settings: dict[str, str],
    resume: bool,
    timeout: float,
) -> Any:
    import numba
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    from refkernels import measurement
    from refkernels.measurement.run import FRAMEWORKS

    # This process is ours, and its kernels run from one thread: Numba's own pool sleeps between
    # them, where OpenMP's spins and takes the cores from the frameworks.
    numba.config.THREADING_LAYER = "workqueue"
    columns = (TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), Remaining())
    bar = Progress(*columns, TextColumn("{task.description}"), console=Console(stderr=True))
    task = bar.add_task("", total=len(plan.units))

    def show(now: measurement.Progress) -> None:
        bar.start()  # not before: a question that is refused gets one sentence and no bar
        bar.update(task, completed=now.done, description=now.unit[:70])

    try:
        return measurement.measure(
            plan,
            out,
            frameworks=framework or FRAMEWORKS,
            devices=tuple(device or ()),
            settings=settings,
            resume=resume,
            timeout=timeout,
            progress=show,
        )
    finally:
        if bar.live.is_started:
            bar.stop()


def _show(directory: Path) -> None:
    from refkernels import reporting

    _write_and_print(directory, "records.jsonl", reporting.write_report, reporting.terminal_table)


def show_sweeps(directory: Path) -> None:
    """Make the views of directory/sweeps.jsonl, and print the table."""
    from refkernels import reporting

    _write_and_print(directory, "sweeps.jsonl", reporting.write_sweep_report, reporting.sweep_table)


def _write_and_print(
    directory: Path,
    name: str,
    write: Callable[[Path], list[Path]],
    table: Callable[[list[dict[str, Any]]], Any],
) -> None:
    from rich.console import Console

    from refkernels import reporting

    try:
        written = write(directory)
        records = reporting.read_records(directory / name)
    except reporting.RecordsError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename or directory}: {error.strerror}.")
    Console().print(table(records))
    page = next((path for path in written if path.suffix == ".html"), directory)
    more = len(written) - 1
    typer.echo(f"Written: {page} and {more} more file{'' if more == 1 else 's'} beside it.")


def _list(plan: Any) -> None:
    seen: dict[str, list[str]] = {}
    for unit in plan.units:
        if unit.case is not None:
            what = f"{unit.dtype}"
            seen.setdefault(unit.case.name, [])
            if what not in seen[unit.case.name]:
                seen[unit.case.name].append(what)
    for name, dtypes in seen.items():
        typer.echo(f"{name}  ({', '.join(dtypes)})")
    typer.echo(f"{len(seen)} cases, {len(plan.units)} units.")


def parse_settings(settings: list[str]) -> dict[str, str]:
    """NAME=VALUE pairs as a dict; ends with status 2 for anything else."""
    pairs: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            refuse(f"--set {setting!r} is not NAME=VALUE.")
        pairs[name] = value
    return pairs


def refuse(sentence: str) -> NoReturn:
    """Say in one sentence why there is no answer, and end with status 2."""
    typer.echo(f"refkernels: {sentence}", err=True)
    raise typer.Exit(2)
