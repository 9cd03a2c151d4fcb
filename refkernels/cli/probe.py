"""`refkernels probe`: inputs that separate the explanations that still fit an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared.case import read_case, tensors_of
from refkernels.cli.shared.endings import refuse
from refkernels.cli.shared.options import AsJson, CaseOrOp, DirectionName, DrawSeed, Names, Params
from refkernels.cli.shared.pages import show_page


def probe(
    case_or_op: CaseOrOp,
    inputs: Annotated[
        Names | None, typer.Option("--input", help="NAME=FILE.npy or FILE.npz. Repeatable.")
    ] = None,
    outputs: Annotated[
        Names | None,
        typer.Option("--output", help="NAME=FILE.npy, the kernel's output. Repeatable."),
    ] = None,
    param: Params = None,
    direction: DirectionName = None,
    kernel: Annotated[str | None, typer.Option(help="The kernel, if the case has several.")] = None,
    seed: DrawSeed = 0,
    out: Annotated[
        Path, typer.Option(help="Write the inputs here: a folder of .npy, or one .npz.")
    ] = Path("probe"),
    as_json: AsJson = False,
) -> None:
    """Write inputs on which the explanations that fit a kernel's answer differ the most.

    Run your kernel on them and explain its output. Ends with status 2 if there is nothing to
    separate.
    """
    from refkernels.diagnosis import probe as probes
    from refkernels.frameworks.catalog import FrameworkError
    from refkernels.reporting.answer import probe as pages

    try:
        with tensors_of([], 120.0) as tensors:
            case = read_case(case_or_op, inputs, outputs, param, direction, tensors)
        if not case.outputs:
            raise ValueError("There is no kernel's answer to probe: give --output NAME=FILE.npy.")
        answers = case.outputs.get(kernel) if kernel else next(iter(case.outputs.values()))
        if answers is None or (kernel is None and len(case.outputs) > 1):
            kernels = ", ".join(case.outputs)
            raise ValueError(f"A probe is for one kernel: give --kernel, one of {kernels}.")
        separating = probes.probe(case.op, case.inputs, answers, case.params, case.direction, seed)
        written = separating.save(out)
    except (ValueError, TypeError, FrameworkError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename or out} cannot be written ({error.strerror}).")
    _print(separating.to_dict(), written, as_json, pages)


def _print(answer: dict[str, Any], written: list[Path], as_json: bool, pages: Any) -> None:
    if as_json:
        typer.echo(json.dumps({**answer, "files": [str(path) for path in written]}))
    else:
        show_page(pages.page(answer), written)
