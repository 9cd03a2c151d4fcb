"""`refkernels probe`: inputs that separate the explanations that still fit an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from refkernels.cli.shared import options
from refkernels.cli.shared.case import read_case, tensors_of
from refkernels.cli.shared.endings import refusing
from refkernels.cli.shared.pages import show
from refkernels.cli.shared.wording import option


def probe(
    case_or_op: options.CaseOrOp = None,
    oracle: options.Oracle = None,
    inputs: options.Inputs = None,
    outputs: Annotated[list[str] | None, option("probe.outputs", "--output")] = None,
    param: options.Params = None,
    direction: options.DirectionName = None,
    kernel: Annotated[str | None, option("probe.kernel")] = None,
    seed: options.DrawSeed = 0,
    out: Annotated[Path, option("probe.out")] = Path("probe"),
    as_json: options.AsJson = False,
) -> None:
    """Write inputs that tell apart what still fits an answer.

    The explanations that fit differ the most on them. Run your kernel on them and explain its
    output. Ends with status 2 if there is nothing to separate.
    """
    from refkernels.diagnosis import probe as probes
    from refkernels.reporting.answer import probe as pages

    case_or_op = options.case_or_oracle(case_or_op, oracle)
    with refusing(out):
        with tensors_of([], 120.0) as tensors:
            case = read_case(case_or_op, inputs, outputs, param, direction, tensors, oracle=oracle)
        if not case.outputs:
            raise ValueError("There is no kernel's answer to probe: give --output NAME=FILE.npy.")
        answers = case.outputs.get(kernel) if kernel else next(iter(case.outputs.values()))
        if answers is None or (kernel is None and len(case.outputs) > 1):
            kernels = ", ".join(case.outputs)
            raise ValueError(f"A probe is for one kernel: give --kernel, one of {kernels}.")
        separating = probes.probe(case.op, case.inputs, answers, case.params, case.direction, seed)
        written = separating.save(out)
    answer = separating.to_dict()
    files = [str(path) for path in written]
    show({**answer, "files": files}, as_json, pages.page(answer), written)
