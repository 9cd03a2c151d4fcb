"""`refkernels explain`: the cause of a kernel's numbers, from files, live frameworks or text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from refkernels.cli.shared import options, severity
from refkernels.cli.shared.case import read_case, tensors_of
from refkernels.cli.shared.endings import refuse, refusing
from refkernels.cli.shared.kernels import Abi, Interpreter, Kernels, asked_targets
from refkernels.cli.shared.pages import show
from refkernels.cli.shared.wording import option
from refkernels.records.files import write_whole


def explain(
    case_or_op: options.CaseOrOp = None,
    oracle: options.Oracle = None,
    inputs: Annotated[list[str] | None, option("explain.inputs", "--input")] = None,
    outputs: Annotated[list[str] | None, option("explain.outputs", "--output")] = None,
    framework: options.Frameworks = None,
    kernel: Kernels = None,
    abi: Abi = None,
    python: Interpreter = None,
    param: options.Params = None,
    direction: options.DirectionName = None,
    device: options.Device = None,
    settings: options.Settings = None,
    timeout: options.Timeout = 120.0,
    lang: options.Language = "en",
    as_json: options.AsJson = False,
    fail_on: severity.FailOn = None,
    out: Annotated[Path | None, option("explain.out")] = None,
    save: Annotated[Path | None, option("explain.save")] = None,
    pasted: Annotated[Path | None, option("explain.pasted", allow_dash=True)] = None,
) -> None:
    """Explain why numbers differ from the truth or from others.

    Ends with status 1 if a framework failed or an output is as bad as --fail-on, 2 if the question
    cannot be answered; otherwise with 0, however wrong the numbers are.
    """
    from refkernels.diagnosis import casefile
    from refkernels.reporting.answer import page as answers

    case_or_op = options.case_or_oracle(case_or_op, oracle)
    if pasted is not None:
        if framework or kernel or abi or python or save is not None or settings:
            refuse(
                "--pasted explains printed numbers: leave out --framework, --kernel, --abi, "
                "--python, --set and --save."
            )
        _explain_pasted(
            case_or_op, pasted, inputs or [], outputs or [], param or [], direction, lang, as_json,
            fail_on, out,
        )  # fmt: skip
        return
    with refusing(save or out):
        with tensors_of(framework or [], timeout) as tensors:
            case = read_case(case_or_op, inputs, outputs, param, direction, tensors, oracle=oracle)
        ops = [] if case_or_op.endswith(".npz") else [case.op]
        names, _ = asked_targets(framework, kernel, ops, abi, python)
        case, faults = _run(case, names, options.parse_settings(settings), device, timeout)
        for fault in faults:
            typer.echo(f"refkernels: {fault}", err=True)
        if not case.outputs and faults:
            raise typer.Exit(1)
        explanation = case.explain()
        if save is not None:
            casefile.save(save, case)
        if out is not None:
            write_whole(out, explanation.to_markdown(lang))
    answer = explanation.to_dict()
    show(answer, as_json, answers.brief(answer, lang), [path for path in (save, out) if path])
    bad = severity.reached(fail_on, _judged(explanation))
    if faults or bad:
        raise typer.Exit(1)


def _explain_pasted(
    op_name: str,
    path: Path,
    inputs: list[str],
    outputs: list[str],
    params: list[str],
    direction: str | None,
    lang: str,
    as_json: bool,
    fail_on: str | None,
    out: Path | None,
) -> None:
    """Explain what the printed numbers in a text prove."""
    from refkernels import registry
    from refkernels.cli.shared.case import read_params
    from refkernels.printed import text, verdict
    from refkernels.reporting.answer import printed as answers

    with refusing(path):
        op = registry.get(op_name)
        if str(path) == "-":
            content = text.read(sys.stdin.buffer, "The standard input")
        else:
            content = text.read_path(path)
        tensors = text.tensors(content)
        tensors += text.numbers(content, len(tensors) + 1)
        answer = verdict.explain_printed(
            op, tensors, inputs, outputs, read_params(params),
            direction or "forward",  # type: ignore[arg-type]
        )  # fmt: skip
    with refusing(out):
        if out is not None:
            write_whole(out, answers.page(answer, lang))
    show(answer, as_json, answers.brief(answer, lang), [out] if out else [])
    if severity.reached(fail_on, _proven(answer)):
        raise typer.Exit(1)


def _proven(answer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each printed output that is proven wrong, as a verdict."""
    for kernel, judged in answer["kernels"].items():
        for output, proof in judged["outputs"].items():
            if proof["verdict"] == "wrong":
                yield kernel, {"output": output, "verdict": "exceeds_bound", "flags": []}


def _judged(explanation: Any) -> Iterator[tuple[str, Any]]:
    """Each kernel's outputs with their verdicts."""
    for kernel, explained in (explanation.kernels or {"kernel": explanation}).items():
        for output, evidence in explained.evidence["outputs"].items():
            yield kernel, {**evidence, "output": output}


def _run(
    case: Any,
    frameworks: Sequence[str],
    settings: dict[str, str],
    device: str | None,
    timeout: float,
) -> tuple[Any, list[str]]:
    """The case with the answers of live frameworks, and their failures. `device` is that of names
    without one."""
    from dataclasses import replace

    from refkernels import question
    from refkernels.frameworks import catalog
    from refkernels.frameworks.gateway import Session, split_settings
    from refkernels.target_names import merged

    targets = {str(name): (spec, name) for spec, name in map(catalog.target, frameworks)}
    for spec, name in targets.values():  # refused before anything starts
        split_settings(spec.framework, merged(settings, name))
    if not targets and not case.outputs:
        raise ValueError("There is nothing to explain: give --output, or --framework to run it.")
    op, inputs, _ = question.read(case.op, case.inputs, case.params, case.direction)
    faults = []
    outputs, environment = dict(case.outputs), dict(case.environment)
    for text, (_, name) in targets.items():
        where = name.device or device or "cpu"
        with Session(text, settings, timeout) as session:
            reply = session.run(
                op.name, case.direction, inputs, case.params, where, leaves=op.differentiated
            )
            if not reply.ok:
                faults.append(str(reply.reason))
                continue
            kernel = _kernel(session, case.op)
            outputs[kernel] = reply.outputs
            environment[kernel] = {**session.info["environment"], "device": where}
    return replace(case, outputs=outputs, environment=environment), faults


def _kernel(session: Any, op: str) -> str:
    """The kernel's name in the answer: the framework, or the formula that its adapter composes."""
    from refkernels.target_names import short

    formula = session.info["formulas"].get(op)
    details = str(session.name).removeprefix(session.spec.name).removeprefix("==")
    return f"{formula} {details}".strip() if formula else short(str(session.name))
