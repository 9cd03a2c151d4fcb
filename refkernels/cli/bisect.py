"""`refkernels bisect`: in which version did a framework's numbers change?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion, options
from refkernels.cli.shared.endings import refuse, refusing, stop
from refkernels.cli.shared.wording import argument, option

CHANGE = options.one_of("--change", "bits", "error")


def bisect(
    framework: Annotated[str, argument("bisect.framework", autocompletion=completion.frameworks)],
    versions: Annotated[str, option("bisect.versions")],
    op: options.Ops = None,
    dtype: options.Dtypes = None,
    case: options.Cases = None,
    out: Annotated[Path, option("bisect.out")] = Path("bisect"),
    every: Annotated[bool, option("bisect.every", "--every")] = False,
    change: Annotated[str, option("bisect.change", parser=CHANGE)] = "bits",
    settings: options.Settings = None,
    timeout: options.Timeout = 120.0,
    lang: options.Language = "en",
) -> None:
    """Find the version of a framework that changed its answers.

    Measures released versions, each once, in managed environments that stay (`refkernels env
    list`). Ends with status 2 if the question cannot be answered, 130 if it was stopped; otherwise
    with 0.
    """
    from refkernels.frameworks import catalog, released
    from refkernels.runs import measurement
    from refkernels.runs.bisection import boundaries

    with refusing():
        spec, name = catalog.target(framework)
        if name.kernel is not None or name.version:
            refuse(f"{framework}: name the framework without a version, such as {spec.name}.")
        plan = measurement.select(op or (), dtype or (), case or ())
        releases = released.versions(spec, versions)
    runs = _Runs(name, plan, out, options.parse_settings(settings), timeout)
    try:
        pairs = list(
            boundaries(
                releases, runs.measured, lambda old, new: runs.changed(old, new, change), every
            )
        )
    except KeyboardInterrupt:
        stop(f"Stopped; finished versions are kept: run the command again to continue. ({out})")
    if not runs.studies:
        refuse(f"no version of {framework} could be measured: {next(iter(runs.reasons.values()))}")
    _show(runs, pairs, lang)


class _Runs:
    """The runs of the versions, each measured on demand."""

    def __init__(
        self, name: Any, plan: Any, out: Path, settings: dict[str, str], timeout: float
    ) -> None:
        self.name, self.plan, self.out = name, plan, out
        self.settings, self.timeout = settings, timeout
        self.studies: dict[str, Any] = {}
        self.reasons: dict[str, str] = {}

    def measured(self, version: str) -> bool:
        """Measure the version, and return whether it gave results. If not, the reason is kept."""
        from refkernels.frameworks import emulation, environments
        from refkernels.frameworks.catalog import FrameworkError
        from refkernels.records.journal import JournalError
        from refkernels.reporting.measure.study import Study
        from refkernels.runs import measurement
        from refkernels.target_names import merged

        target = replace(self.name, version=version)
        typer.echo(f"{target} ...", err=True)
        bare = str(replace(target.anywhere, settings=()))
        machine = merged(self.settings, target).get(emulation.SETTING, "")
        try:
            try:
                environments.find(bare, machine)
            except environments.NotInstalled:
                environments.create(bare, machine=machine)
            outcome = measurement.measure(
                self.plan,
                self.out / version,
                frameworks=[str(target)],
                settings=self.settings,
                timeout=self.timeout,
                resume=True,
            )
        except FrameworkError as error:
            self.reasons[version] = str(error)
            return False
        except JournalError as error:
            refuse(str(error))
        # All versions get one name, because a comparison matches records by their target.
        target_name = str(self.name.anywhere)
        study = Study.of([{**record, "framework": target_name} for record in outcome.records])
        if not study.measurements:
            self.reasons[version] = study.failures[0].reason if study.failures else "no case"
            return False
        self.studies[version] = study
        return True

    def compared(self, old: str, new: str) -> Any:
        """What changed from one version to another."""
        from refkernels.reporting.compare import changes

        return changes.compare(self.studies[old], self.studies[new])

    def changed(self, old: str, new: str, change: str) -> bool:
        """Whether bits changed; with "error", whether a verdict, an error or what runs changed."""
        counts = self.compared(old, new).counts
        unchanged = ("same",) if change == "bits" else ("same", "bits")
        return any(number for kind, number in counts.items() if kind not in unchanged)


def _show(runs: _Runs, pairs: list[tuple[str, str]], lang: str) -> None:
    from rich.console import Console

    from refkernels.reporting.compare import views
    from refkernels.reporting.words.report import words_of

    words, console = words_of(lang), Console()
    measured = list(runs.studies)
    for version, reason in runs.reasons.items():
        typer.echo(words("bisect:unmeasured", version=version, reason=reason))
    if not pairs:
        typer.echo(words("bisect:none", target=runs.name, versions=", ".join(measured)))
    for old, new in pairs:
        comparison = runs.compared(old, new)
        console.print(views.comparison_table(comparison, old, new, lang, 5))
        folder = runs.out / f"{old}-{new}"
        written = views.write_comparison(folder, comparison, old, new, lang, "")
        typer.echo(words("look", page=written[0]))
