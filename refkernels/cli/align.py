"""`refkernels align`: are two runs, recorded by `refkernels.capture`, the same training?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import pages
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.options import AsJson, Language, Names
from refkernels.cli.shared.wording import argument, option


def align(
    run_a: Annotated[Path | None, argument("align.run_a")] = None,
    run_b: Annotated[Path | None, argument("align.run_b")] = None,
    null: Annotated[list[Path] | None, option("align.null")] = None,
    other_seed: Annotated[list[Path] | None, option("align.other_seed")] = None,
    names: Annotated[Path | None, option("align.names", "--map")] = None,
    step: Annotated[list[int] | None, option("align.step")] = None,
    metric: Annotated[Names | None, option("align.metric")] = None,
    questions: Annotated[int | None, option("align.questions", "--n")] = None,
    answers: Annotated[list[Path] | None, option("align.answers")] = None,
    dataset: Annotated[Path | None, option("align.dataset")] = None,
    rates: Annotated[bool, option("align.rates")] = False,
    demo: Annotated[bool, option("align.demo")] = False,
    lang: Language = "en",
    as_json: AsJson = False,
    out: Annotated[Path | None, option("align.out")] = None,
) -> None:
    """Compare two captured trainings: are they the same?

    One run alone is checked against its own declaration. Ends with status 1 if they are different
    trainings, 2 if the question cannot be answered or a capture is cut off; otherwise, and for
    --demo, with 0.
    """
    from refkernels.reporting.alignment import page

    with refusing(out):
        if metric or answers:
            _print_metric(metric or [], questions, answers or [], dataset, lang, as_json)
            return
        if rates and run_a is not None:
            _print_rates(run_a, run_b, lang, as_json)
            return
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        if demo:
            if run_a is not None:
                raise ValueError("--demo has its own runs: give it no folder.")
            place = Path(__file__).parents[1] / "alignment" / "demonstration"
            verdict = _aligned(place / "run_a", place / "run_b", [], [], None, None)
        elif run_a is None:
            raise ValueError("There is nothing to align: give a captured run's folder, or --demo.")
        else:
            verdict = _aligned(run_a, run_b, null or [], other_seed or [], names, step)
        written = [] if out is None else _write(out, verdict)
    ending = "\n" + page.words_of(lang)["usage"] if demo else ""
    pages.show(verdict, as_json, page.brief(verdict, lang) + ending, written)
    if verdict["verdict"]["word"] == "different" and not demo:
        raise typer.Exit(1)
    if page.CUT_OFF & {reason["word"] for reason in verdict["verdict"]["reasons"]}:
        raise typer.Exit(2)


def _aligned(
    run_a: Path, run_b: Path | None, null_folders: list[Path], seed_runs: list[Path],
    map_file: Path | None, steps: list[int] | None,
) -> dict[str, Any]:  # fmt: skip
    from refkernels.alignment import align
    from refkernels.alignment.run import runs_in

    null_runs = [run for null in null_folders for run in runs_in(null)]
    options: dict[str, Any] = {"nulls": null_runs, "seeds": seed_runs}
    if map_file is not None:
        names = options["names"] = _json(map_file, "a map of names")
        if not isinstance(names, dict) or {*map(type, names.values())} - {str}:
            raise ValueError(f"{map_file} is not a map of names: give a JSON object of strings.")
    options["progress"] = lambda line: typer.echo(f"refkernels: {line}", err=True)
    return align(run_a, run_b, **options, steps=steps).to_dict()


def _json(path: Path, expected: str) -> Any:
    if path.stat().st_size > 2**30:
        raise ValueError(f"{path} is too large for {expected}.")
    try:
        return json.loads(path.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError(f"{path} is not a JSON file: {expected} is expected.") from None


def _write(folder: Path, verdict: dict[str, Any]) -> list[Path]:
    from refkernels.records.files import write_whole
    from refkernels.reporting.alignment import html, page

    texts = {"alignment.json": json.dumps(verdict, ensure_ascii=False, indent=1) + "\n"}
    for lang, mark in (("en", ""), ("zh", ".zh")):
        texts[f"alignment{mark}.html"] = html.page(verdict, lang)
        texts[f"alignment{mark}.md"] = page.markdown(verdict, lang)
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [folder / name for name in texts]


def _print_rates(a: Path, b: Path | None, lang: str, as_json: bool) -> None:
    from refkernels.alignment.rates import compared, read_rates
    from refkernels.reporting.alignment import page

    record = compared(read_rates(a), None if b is None else read_rates(b))
    typer.echo(json.dumps(record) if as_json else page.rates(record, lang))
    if record.get("parted"):
        raise typer.Exit(1)


def _print_metric(
    figures: list[str],
    questions: int | None,
    answers: list[Path],
    dataset: Path | None,
    lang: str,
    as_json: bool,
) -> None:
    from dataclasses import asdict

    from refkernels.alignment import metric
    from refkernels.reporting.alignment import page

    if answers:
        if len(answers) != 2 or dataset is None:
            raise ValueError("Give --answers twice, and --dataset: questions with their answers.")
        right = metric.right_answers(_json(dataset, "a SQuAD file"))
        runs = [_json(path, "predictions") for path in answers]
        scored = {name: [metric.scores(run, right, score) for run in runs]
                  for name, score in metric.SCORES.items()}  # fmt: skip
        results = {name: asdict(metric.of_answers(*pair)) for name, pair in scored.items()}
        lines = [f"{name.upper()}: {page.metric(result, lang)}" for name, result in results.items()]
        typer.echo(json.dumps(results) if as_json else "\n".join(lines))
    else:
        if len(figures) != 2 or questions is None:
            raise ValueError("Give --metric twice, and --n: the number of questions behind it.")
        (name_a, a), (name_b, b) = map(_percentage, figures)
        if name_a != name_b:
            raise ValueError(f"The metrics are {name_a!r} and {name_b!r}: give one metric twice.")
        result = asdict(metric.of_figures(a, b, questions))
        typer.echo(json.dumps(result) if as_json else page.metric(result, lang))


def _percentage(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"--metric {text} is not NAME=PERCENT, such as em=81.71.") from None
