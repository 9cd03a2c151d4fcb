"""Every op whose inputs can be printed: its plain algorithm's answers are never called wrong."""

from typing import Any

import numpy as np
import pytest
from hunting import HUNT, one_way
from printed_tensors import shown

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.op import Direction, Op
from refkernels.printed import text, verdict

LARGEST = 1300  # elements of the inputs together
Inputs = dict[str, np.ndarray]


QUESTIONS = [(name, way) for name, op in registry.ops().items() for way in op.directions]


def explained(op: Op, direction: Direction, inputs: Inputs, params: Any) -> dict[str, Any]:
    """What is said of the outputs of a right kernel. Raises ValueError as `explain_printed`."""
    plain = op.plain(direction, inputs, params, formats.BINARY32)
    answers = {name: np.asarray(y, np.float32) for name, y in plain.items()}
    thread = "".join(shown(name, array) for name, array in [*inputs.items(), *answers.items()])
    of_inputs = [f"{name}={k}" for k, name in enumerate(inputs, 1)]
    of_outputs = [f"kernel:{name}={k}" for k, name in enumerate(answers, len(inputs) + 1)]
    tensors = text.tensors(thread)
    answer = verdict.explain_printed(op.name, tensors, of_inputs, of_outputs, params, direction)
    outputs: dict[str, Any] = answer["kernels"]["kernel"]["outputs"]
    return outputs


@pytest.mark.parametrize(("op", "direction"), one_way(QUESTIONS))
def test_a_right_kernel_s_printed_numbers_are_never_called_wrong(
    op: str, direction: Direction
) -> None:
    record, asked = registry.get(op), 0
    for case in record.cases():
        if "float32" not in case.dtypes or direction not in case.directions:
            continue
        arrays, params = case.build("float32")
        inputs = {name: arrays[name] for name in record.takes(direction) if name in arrays}
        if sum(array.size for array in inputs.values()) > LARGEST or asked == HUNT:
            continue
        asked += 1
        try:
            outputs = explained(record, direction, inputs, params)
        except ValueError as refused:
            if "interval" not in str(refused) and "before its formula" not in str(refused):
                raise
            continue
        for name, output in outputs.items():
            assert output["verdict"] == "within", (case.name, name, output["worst"])
    assert asked


def test_printed_integers_of_eight_bits_are_operands() -> None:
    op = registry.get("scaled_matmul")
    built = (case.build("float32") for case in op.cases())
    inputs, params = next(one for one in built if one[0]["a"].dtype == np.int8)
    outputs = explained(op, "forward", inputs, params)
    assert {output["verdict"] for output in outputs.values()} == {"within"}
