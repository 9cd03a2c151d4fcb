"""`refkernels measure`: compares the frameworks with the oracles, and writes the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion, explaining, options, pages, severity
from refkernels.cli.shared.endings import refusing, resumable
from refkernels.cli.shared.kernels import Abi, Interpreter, Kernels, asked_targets
from refkernels.cli.shared.progress import Show, shown
from refkernels.cli.shared.wording import option
from refkernels.target_names import is_kernel

_MOST_JUDGES = 8  # more would wait for the frameworks, and each takes a quarter of a gigabyte


def measure(
    framework: options.Frameworks = None,
    kernel: Kernels = None,
    abi: Abi = None,
    python: Interpreter = None,
    op: Annotated[
        list[str] | None, option("measure.op", "--op", "--oracle", autocompletion=completion.ops)
    ] = None,
    dtype: options.Dtypes = None,
    device: Annotated[list[str] | None, option("measure.device")] = None,
    case: options.Cases = None,
    out: Annotated[Path, option("measure.out")] = Path("report"),
    full: Annotated[bool, option("measure.full", "--full")] = False,
    explain_all: Annotated[bool, option("measure.explain_all", "--explain-all")] = False,
    resume: options.Resume = False,
    isa: Annotated[bool, option("measure.isa", "--isa")] = False,
    settings: options.Settings = None,
    timeout: options.Timeout = 120.0,
    show_list: Annotated[bool, option("measure.show_list", "--list")] = False,
    lang: options.Language = "en",
    fail_on: severity.FailOn = None,
) -> None:
    """Measure frameworks and kernels, and write a report.

    Oracles give the truth; all frameworks by default. Ends with status 1 if a framework failed on
    something (the report says on what), a kernel answered nothing or an output is as bad as
    --fail-on, 2 if the question cannot be answered, 130 if it was stopped; otherwise with 0,
    however wrong the numbers are.
    """
    from refkernels.runs import measurement

    framework, computed = asked_targets(framework, kernel, op or (), abi, python)
    op = op or computed
    with refusing():
        plan = measurement.select(op or (), dtype or (), case or (), full=full or show_list)
    if show_list:
        _list(plan)
        return
    with refusing(out, also=()), resumable(out):
        setting_values = options.parse_settings(settings)
        if isa:
            names = framework or measurement.FRAMEWORKS
            framework = list(measurement.with_instruction_sets(names, setting_values, timeout))
        with shown("measuring") as (show, console):
            outcome = measurement.measure(
                plan,
                out,
                frameworks=framework or measurement.FRAMEWORKS,
                devices=tuple(device or ()),
                settings=setting_values,
                resume=resume,
                timeout=timeout,
                reopen=resume and explain_all,
                **_reactions(plan, show, console, lang, explain_all),
            )
    pages.show_measured(out, lang)
    measured = [record for record in outcome.records if record["kind"] == "measurement"]
    judged = [
        (f"{m['framework']} {m['direction']} {m['dtype']} {m['case']['name']}", m)
        for m in measured
        if m["status"] == "ok"
    ]
    bad = severity.reached(fail_on, judged)
    silent = {m["framework"] for m in measured} - {m["framework"] for _, m in judged}
    kernels_silent = any(is_kernel(name) for name in silent)
    if outcome.faults or (framework and outcome.missing) or kernels_silent or bad:
        raise typer.Exit(1)


def _reactions(plan: Any, show: Show, console: Any, lang: str, explain_all: bool) -> dict[str, Any]:
    """Who judges, and what follows the records of a run: the progress, the first cards, and the
    explanations."""
    import numba

    from refkernels.runs.sweeps.pool import usable_cores

    # This process is ours and calls its kernels from one thread. Between calls, Numba's own pool
    # sleeps; OpenMP's would spin and take the cores from the frameworks.
    numba.config.THREADING_LAYER = "workqueue"
    total = len(plan.units)
    return {
        "judges": min(usable_cores(), _MOST_JUDGES),
        "progress": lambda now: show(now.done, now.total, now.unit),
        "on_first_results": lambda records: _show_first(console, records, lang),
        "afterwards": lambda records, targets, call: explaining.explain_symptoms(
            records, targets, call, lambda line: show(total, total, line), explain_all
        ),
    }


def _show_first(console: Any, records: list[dict[str, Any]], lang: str) -> None:
    """Print the first cards, long before the last unit is measured."""
    from refkernels import reporting
    from refkernels.reporting.words.report import words_of

    measured = [
        {name: value for name, value in record.items() if name != "plan"} for record in records
    ]
    console.print(reporting.terminal_table(measured, lang))
    console.print(words_of(lang)["so_far"])


def _list(plan: Any) -> None:
    dtypes_of: dict[str, dict[str, None]] = {}
    for unit in plan.units:
        if unit.case is not None:
            dtypes_of.setdefault(unit.case.name, {})[f"{unit.dtype}"] = None
    for name, dtypes in dtypes_of.items():
        typer.echo(f"{name}  ({', '.join(dtypes)})")
    typer.echo(f"{len(dtypes_of)} cases, {len(plan.units)} units.")
