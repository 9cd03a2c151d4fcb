"""`refkernels judge`: whether a kernel is right, and what was shown."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from refkernels.cli.shared import completion
from refkernels.cli.shared.endings import refuse
from refkernels.cli.shared.kernels import named_kernels
from refkernels.cli.shared.options import MOST_SEED, AsJson, Language, Names, check_language


def judge(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help="FILE.py:FUNCTION.")],
    op: Annotated[
        str | None,
        typer.Option(
            help="Its op, where the function's name does not tell.", autocompletion=completion.ops
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Of the floating inputs.", autocompletion=completion.dtypes)
    ] = "float32",
    level: Annotated[str, typer.Option(help="quick, default (a minute) or full.")] = "default",
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=MOST_SEED, help="Of the inputs; secret until the end without it."),
    ] = None,
    length: Annotated[
        Names | None,
        typer.Option(help="LETTER=16,32: the only lengths that it is made for. Repeatable."),
    ] = None,
    abi: Annotated[
        str | None, typer.Option(help='Of a C function: "float32* x, float32* y, int64 n".')
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="The interpreter: a path, or a framework's name.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda:0 for a kernel of torch's.")] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Write the page in Markdown here.")] = None,
    lang: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Judge a kernel that may have been written to pass.

    It runs in processes of its own, on inputs that it has not seen. Ends with status 0 for a right
    kernel and 1 for any other verdict.
    """
    from refkernels.frameworks.catalog import FrameworkError
    from refkernels.judging.judge import judge as verdict_on
    from refkernels.records.files import write_whole
    from refkernels.reporting.judging import views

    check_language(lang)
    names, _ = named_kernels([kernel], [op] if op else [], abi, python)
    lengths = dict(_length(text) for text in length or ())
    try:
        found = verdict_on(
            names[0], dtype=dtype, level=level, seed=seed, lengths=lengths, device=device
        )
    except (ValueError, FrameworkError) as error:
        refuse(f"{str(error).rstrip('.')}.")
    words = ["refkernels", "judge", names[0], "--seed", str(found.seed)]
    for option, value, usual in (
        ("--dtype", dtype, "float32"), ("--level", level, "default"), ("--device", device, "cpu"),
    ):  # fmt: skip
        words += [option, value] if value != usual else []
    for text in length or ():
        words += ["--length", text]
    record, replay = found.to_dict(), shlex.join(words)
    if as_json:
        typer.echo(json.dumps({**record, "replay": replay}, allow_nan=False))
    else:
        typer.echo("\n".join(views.lines(record, replay, lang)))
    if out is not None:
        try:
            write_whole(out, views.markdown(record, replay, lang))
        except OSError as error:
            refuse(f"{out} cannot be written ({error.strerror}).")
    raise typer.Exit(0 if found.right else 1)


def _length(text: str) -> tuple[str, tuple[int, ...]]:
    letter, _, several = text.partition("=")
    try:
        lengths = tuple(int(one) for one in several.split(","))
    except ValueError:
        lengths = ()
    if not letter or not lengths or min(lengths) < 1:
        refuse(f"--length {text!r} is not LETTER=LENGTH,LENGTH, such as n=16,32.")
    return letter, lengths
