"""Reads the case that CASE.npz, or --input, --output and --param, describe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def read_case(
    case_or_op: str,
    inputs: list[str] | None,
    outputs: list[str] | None,
    params: list[str] | None,
    direction: str | None,
    tensors: Any,
    drawn: dict[str, Any] | None = None,
    oracle: str | None = None,
) -> Any:
    """The case of a case file, or of the options. `drawn`: inputs for an oracle of a user's;
    `oracle`: the one that a case file is about."""
    from refkernels import registry
    from refkernels.cli.shared import arrays
    from refkernels.diagnosis import casefile

    if not case_or_op.endswith(".npz"):
        given = _by_name(arrays.read_inputs(inputs or [], tensors))
        op = registry.get(case_or_op, {**given, **(drawn or {})} or None)
        if ".py:" in case_or_op and not (given or drawn):  # its file has an example
            example = next((case.build("float32")[0] for case in op.cases()), {})
            given = {n: example[n] for n in op.takes(direction or "forward") if n in example}  # type: ignore[arg-type]
        return casefile.CaseFile(
            op.name,
            direction or "forward",  # type: ignore[arg-type]
            given,
            arrays.read_outputs(outputs or [], tensors),
            read_params(params or ()),
        )
    if inputs or params or direction:
        raise ValueError(
            f"{case_or_op} holds its own inputs, params and direction: give only --output or "
            "--framework besides it."
        )
    case = casefile.load(case_or_op, oracle)
    case.outputs.update(arrays.read_outputs(outputs or [], tensors))
    return case


def _by_name(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of one question. Some may be given per kernel, as torch:x; inputs that differ
    between kernels are refused."""
    from refkernels import question

    if not any(":" in name for name in inputs):
        return inputs
    by_kernel: dict[str, dict[str, Any]] = {}
    for text, array in inputs.items():
        kernel, _, name = text.rpartition(":")
        by_kernel.setdefault(kernel or "--input", {})[name] = array
    return question.shared(by_kernel)


def tensors_of(frameworks: Sequence[str], timeout: float) -> Any:
    """The reader of .pt files: the torch among the frameworks, or the installed one."""
    from refkernels.cli.shared import arrays
    from refkernels.frameworks import catalog

    torches = [name for name in frameworks if catalog.target(name)[0].name == "torch"]
    return arrays.tensors_of_torch([*torches, "torch"][0], timeout)


def read_params(texts: Sequence[str]) -> dict[str, Any]:
    """The values of --param NAME=VALUE by name."""
    return dict(_param(text) for text in texts)


def _param(text: str) -> tuple[str, Any]:
    from refkernels.records.parameters import parse_parameter

    name, _, value = text.partition("=")
    if not (name and value):
        raise ValueError(f"--param {text!r} is not NAME=VALUE.")
    try:
        return name, parse_parameter(value)
    except ValueError as error:
        raise ValueError(f"--param {name[:40]!r}: {error}.") from None
