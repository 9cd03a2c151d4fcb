"""`refkernels explain`: why numbers are what they are, from files or from live frameworks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import completion, severity
from refkernels.cli.shared.options import seconds

Names = list[str]


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="CASE.npz|OP", help="A case file, or an op.", autocompletion=completion.ops
        ),
    ],
    inputs: Annotated[
        Names | None,
        typer.Option(
            "--input",
            help="NAME=FILE.npy, NAME=FILE.npz:ARRAY, or FILE.npz for all of its arrays; torch's "
            ".pt files likewise. Repeatable.",
        ),
    ] = None,
    outputs: Annotated[
        Names | None,
        typer.Option(
            "--output",
            help="KERNEL:NAME=FILE.npy or KERNEL:FILE.npz, what a kernel gave. Repeatable.",
        ),
    ] = None,
    framework: Annotated[
        Names | None,
        typer.Option(
            help="Run it there, now: torch, paddle==2.6.2, torch@OMP_NUM_THREADS=1, paddle:gpu:0, "
            "... Repeatable.",
            autocompletion=completion.frameworks,
        ),
    ] = None,
    param: Annotated[
        Names | None, typer.Option(help="NAME=VALUE, such as eps=1e-5. Repeatable.")
    ] = None,
    direction: Annotated[str | None, typer.Option(help="forward (default) or backward.")] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Where, for names without a device: cpu (default), cuda:0, npu:0, ..."),
    ] = None,
    settings: Annotated[
        Names | None,
        typer.Option("--set", help="NAME=VALUE: environment variable or framework flag."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(parser=seconds, help="Seconds that a framework may take.")
    ] = 120.0,
    lang: Annotated[str, typer.Option(help="en or zh.")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    fail_on: Annotated[str | None, severity.OPTION] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the whole answer, scripts and all, as Markdown.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the case to a file to pass on.")] = None,
) -> None:
    """Explain why a kernel's numbers differ from the truth, or kernels' from each other.

    Ends with status 1 where a framework failed or an output is as bad as --fail-on, 2 where the
    question cannot be answered; else with 0, however wrong the numbers are.
    """
    from refkernels.cli.app import parse_settings, refuse
    from refkernels.diagnosis import casefile
    from refkernels.frameworks.catalog import FrameworkError
    from refkernels.reporting import answers

    faults: list[str] = []
    severity.check(fail_on)
    try:
        answers.words_of(lang)
        with tensors_of(framework or [], timeout) as tensors:
            case = read_case(what, inputs or [], outputs or [], param or [], direction, tensors)
        case, faults = _run(case, framework or [], parse_settings(settings or []), device, timeout)
        for fault in faults:
            typer.echo(f"refkernels: {fault}", err=True)
        if not case.outputs and faults:
            raise typer.Exit(1)
        found = case.explain()
        if save is not None:
            casefile.save(save, case)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(found.to_markdown(lang), encoding="utf-8")
    except (ValueError, TypeError, FrameworkError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename or save or out} cannot be written ({error.strerror}).")
    _print(found.to_dict(), lang, as_json, [path for path in (save, out) if path is not None])
    bad = severity.reached(fail_on, _judged(found))
    if faults or bad:
        raise typer.Exit(1)


def _judged(found: Any) -> Iterator[tuple[str, Any]]:
    """Each kernel's outputs with their verdicts."""
    for kernel, one in (found.kernels or {"kernel": found}).items():
        for output, told in one.evidence["outputs"].items():
            yield kernel, {**told, "output": output}


def read_case(
    what: str,
    inputs: list[str],
    outputs: list[str],
    params: list[str],
    direction: str | None,
    tensors: Any,
) -> Any:
    """The case file, or the case that the options make."""
    from refkernels.cli.shared import arrays as array_options
    from refkernels.diagnosis import casefile

    if not what.endswith(".npz"):
        return casefile.CaseFile(
            what,
            direction or "forward",  # type: ignore[arg-type]
            array_options.read_inputs(inputs, tensors),
            array_options.read_outputs(outputs, tensors),
            dict(_param(text) for text in params),
        )
    if inputs or params or direction:
        raise ValueError(
            f"{what} says itself what its inputs, params and direction are: give --output or "
            "--framework besides it, nothing else."
        )
    case = casefile.load(what)
    case.outputs.update(array_options.read_outputs(outputs, tensors))
    return case


def tensors_of(frameworks: Sequence[str], timeout: float) -> Any:
    """What reads .pt files: the torch that is asked, or the one that there is."""
    from refkernels.cli.shared import arrays as array_options
    from refkernels.frameworks import catalog

    asked = [name for name in frameworks if catalog.seat(name)[0].name == "torch"]
    return array_options.tensors_of_torch([*asked, "torch"][0], timeout)


def _param(text: str) -> tuple[str, Any]:
    from refkernels.parameters import parse_parameter

    name, _, value = text.partition("=")
    if not (name and value):
        raise ValueError(f"--param {text!r} is not NAME=VALUE.")
    try:
        return name, parse_parameter(value)
    except ValueError as error:
        raise ValueError(f"--param {name[:40]!r}: {error}.") from None


def _run(
    case: Any,
    frameworks: Sequence[str],
    settings: dict[str, str],
    device: str | None,
    timeout: float,
) -> tuple[Any, list[str]]:
    """The case with the answers of live frameworks, and what went wrong there. `device`: of those
    whose name has none."""
    from dataclasses import replace

    from refkernels import question
    from refkernels.frameworks import catalog
    from refkernels.frameworks.gateway import Session, split_settings
    from refkernels.seat_names import merged

    seats = {str(name): (spec, name) for spec, name in map(catalog.seat, frameworks)}
    for spec, name in seats.values():  # refused before anything starts
        split_settings(spec.framework, merged(settings, name))
    if not seats and not case.outputs:
        raise ValueError("There is nothing to explain: give --output, or --framework to run it.")
    question.read(case.op, case.inputs, case.params, case.direction)
    faults = []
    outputs, environment = dict(case.outputs), dict(case.environment)
    for text, (_, name) in seats.items():
        where = name.device or device or "cpu"
        with Session(text, settings, timeout) as session:
            reply = session.run(case.op, case.direction, case.inputs, case.params, where)
            if not reply.ok:
                faults.append(str(reply.reason))
                continue
            kernel = _kernel(session, case.op)
            outputs[kernel] = reply.outputs
            environment[kernel] = {**session.info["environment"], "device": where}
    return replace(case, outputs=outputs, environment=environment), faults


def _kernel(session: Any, op: str) -> str:
    """What the answer calls it: the framework, or the formula that its adapter composes."""
    formula = session.info["formulas"].get(op)
    told = str(session.name).removeprefix(session.spec.name).removeprefix("==")
    return f"{formula} {told}".strip() if formula else str(session.name)


def _print(answer: dict[str, Any], lang: str, as_json: bool, written: Sequence[Path]) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    from refkernels.reporting import answers

    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    console = Console(width=min(Console().width, 110))
    console.print(Markdown(answers.brief(answer, lang)))
    for path in written:
        console.print(f"Written: {path}", markup=False, soft_wrap=True)
