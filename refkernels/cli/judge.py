"""`refkernels judge`: is a kernel right, or which kernels of a folder are, and what shows it?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion, options
from refkernels.cli.shared.endings import refuse, refusing, resumable
from refkernels.cli.shared.kernels import named_kernels
from refkernels.cli.shared.options import MOST_SEED, AsJson, Language, Names, Oracle, Resume
from refkernels.cli.shared.progress import shown
from refkernels.cli.shared.wording import argument, option


def judge(
    kernel: Annotated[str, argument("judge.kernel")],
    op: Oracle = None,
    dtypes: Annotated[
        Names | None, option("judge.dtypes", "--dtype", autocompletion=completion.dtypes)
    ] = None,
    level: Annotated[str, option("judge.level")] = "default",
    seed: Annotated[int | None, option("judge.seed", min=0, max=MOST_SEED)] = None,
    length: Annotated[Names | None, option("judge.length")] = None,
    shape: Annotated[Names | None, option("judge.shape")] = None,
    abi: Annotated[str | None, option("judge.abi")] = None,
    python: Annotated[str | None, option("judge.python")] = None,
    device: Annotated[str, option("judge.device")] = "cpu",
    times: Annotated[bool, option("judge.times", "--times")] = False,
    allow_overflow: Annotated[bool | None, option("judge.allow_overflow")] = None,
    task: Annotated[Path | None, option("judge.task")] = None,
    out: Annotated[Path | None, option("judge.out")] = None,
    junit: Annotated[Path | None, option("judge.junit")] = None,
    resume: Resume = False,
    lang: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Judge a kernel that may have been written to pass.

    It runs in processes of its own, on inputs that it has not seen. Ends with status 0 for a right
    kernel, 1 for any other verdict, and 3 for a candidate whose task cannot be judged. In a folder,
    every function that is named after an op is judged; the pages list the right ones by time, and
    the status is 0 if all are right.
    """
    from refkernels.judging.judge import judge as verdict_on
    from refkernels.judging.judgement import NOT_JUDGED
    from refkernels.judging.tasks import judge_candidate
    from refkernels.reporting.judging import views
    from refkernels.testing import junit as document

    lengths = dict(options.read_lengths("--length", text, "n=16,32") for text in length or ())
    shapes = dict(options.read_lengths("--shape", text, "x=32,768") for text in shape or ())
    formats = {n: tuple(o.split(",")) for n, e, o in (t.partition("=") for t in dtypes or ()) if e}
    dtype = ([text for text in dtypes or () if "=" not in text] or ["" if task else "float32"])[-1]
    asked: dict[str, Any] = {"dtype": dtype, "level": level, "seed": seed, "lengths": lengths}
    asked |= {"device": device, "dtypes": formats, "allow_overflow": allow_overflow}
    asked["shapes"] = shapes
    if Path(kernel).is_dir():
        if abi is not None or task is not None:
            refuse("A folder has no library, for --abi, and --task is for one candidate.")
        question = {**asked, "op": op, "python": python}
        _folder(Path(kernel), out or Path("judged"), question, resume, junit, lang, as_json)
        return
    if resume:
        refuse("--resume continues a folder of kernels, and this is one kernel.")
    asked["times"] = times
    with shown("judging") as (asked["progress"], _), refusing():
        if task is not None:
            names = [kernel]
            if abi or python:
                refuse("A task's candidate runs in torch: leave out --abi and --python.")
            judgement = judge_candidate(task, kernel, op, **asked)
        else:
            folder = f"{kernel} is no folder either"
            names, _ = named_kernels([kernel], [op] if op else [], abi, python, folder)
            judgement = verdict_on(names[0], **asked)
    record = judgement.to_dict()
    command = ["refkernels", "judge", names[0], "--seed", str(record["seed"])]
    for name, value, default in (("--level", level, "default"), ("--device", device, "cpu")):
        command += [name, value] if value != default else []
    several = {"--dtype": dtypes, "--length": length, "--shape": shape}
    several |= {"--oracle": [op] if op and ".py:" in op else [], "--task": [str(task)] * bool(task)}
    for name, values in several.items():
        command += [part for text in values or () for part in (name, text)]
    never = allow_overflow is False
    given = {"--times": times, "--allow-overflow": allow_overflow, "--no-allow-overflow": never}
    command += [name for name, on in given.items() if on]
    replay = shlex.join(command)
    if as_json:
        typer.echo(json.dumps({**record, "replay": replay}, allow_nan=False))
    else:
        typer.echo("\n".join(views.lines(record, replay, lang)))
    _write(out, views.markdown(record, replay, lang), as_json)
    _write(junit, document([record], lang), as_json)
    raise typer.Exit({"right": 0, NOT_JUDGED: 3}.get(record["verdict"], 1))


def _write(path: Path | None, text: str, quiet: bool) -> None:
    """Write a page where one is asked for, and say so."""
    from refkernels.records.files import write_whole

    if path is None:
        return
    with refusing(path):
        write_whole(path, text)
    if not quiet:
        typer.echo(f"Written: {path}")


def _folder(
    folder: Path,
    out: Path,
    question: dict[str, Any],
    resume: bool,
    junit: Path | None,
    lang: str,
    as_json: bool,
) -> None:
    """Judge a folder, write its pages, and end with their status."""
    from refkernels.judging.folder import judge_all
    from refkernels.reporting.judging import leaderboard
    from refkernels.testing import junit as document

    with refusing(out), resumable(out):
        with shown("judging") as (show, _):
            records = judge_all(folder, out, question, resume, show)
        written = leaderboard.write_leaderboard(out, lang)
    _write(junit, document(records, lang), as_json)
    if as_json:
        typer.echo(written[-1].read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo("\n".join(leaderboard.lines(records, lang)))
        typer.echo(f"Written: {written[0]}, with {written[1].name} and {written[2].name}.")
    raise typer.Exit(0 if all(record["verdict"] == "right" for record in records) else 1)
