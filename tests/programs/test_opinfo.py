"""Blocks of models, and PyTorch's own samples: answers and gradients against torch's in float64."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hunting import HUNT
from presence import interpreter_of

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.frameworks import catalog
from refkernels.op import Direction, Op
from refkernels.programs.joint import distance
from refkernels.programs.operators import OPERATORS
from refkernels.programs.program import ProgramError, read
from refkernels.programs.program_op import op_of

HERE = Path(__file__).parent
EXPORTER = Path(catalog.__file__).parent / "remote" / "exporter.py"
FIRST, STEP, MOST, LEAST = (0, 1, 8, 100_000) if HUNT > 1 else (32, 40, 1, 150)  # all, or one in 40
UNLIKE = {
    "nn.functional.hardsigmoid": "torch's backward multiplies by 1 / 6 in float32, in float64 too",
    "nn.functional.multi_head_attention_forward": "weights of 1e-215, which no sum beside 1 tells",
}
NO_NUMBER = "no elements"  # a mean of nothing, which torch answers by NaN


@pytest.mark.slow
@pytest.mark.framework("torch")
def test_programs_agree_with_torch_in_float64(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text(" ".join(OPERATORS), encoding="utf-8")
    numbers = map(str, (FIRST, STEP, MOST))
    words = [HERE / "opinfo_samples.py", EXPORTER, tmp_path / "kept", tmp_path, *numbers]
    python = interpreter_of("torch").python
    subprocess.run([python, *map(str, words)], check=True, capture_output=True)
    agreeing, wrong = 0, []
    for file in sorted(tmp_path.glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        with np.load(file.with_suffix(".npz")) as stored:
            arrays = {name: stored[name] for name in stored.files}
        try:
            program = read(document, arrays, document["sample"])
            op = op_of(program, "sample")
            inputs = {i.name: i.array for i in program.inputs if i.kind == "input"}
            answers = both(op, "forward", inputs)
            got = {name: arrays[f"y{k}"].astype(float) for k, name in enumerate(answers)}
            if "dy" in arrays and op.gradients and document["sample"].split("[")[0] not in UNLIKE:
                given = {**inputs, f"d{op.outputs[0]}": arrays["dy"]}
                answers |= both(op, "backward", given)
                floats = [i for i in program.inputs if i.kind == "input" and i.tensor.is_float]
                got |= {f"d{i.name}": arrays.get(f"g{k}") for k, i in enumerate(floats)}
        except ProgramError:
            continue  # told so: no rule, or torch.export does not read it
        except ValueError as refusal:
            wrong += [] if NO_NUMBER in str(refusal) else [document["sample"]]
            continue
        for name, (exact, bound) in answers.items():
            if (y := got[name]) is None or "empty" in document["sample"]:  # as memory was
                continue
            known = np.isfinite(y) & np.isfinite(exact.radius)  # the others are special values
            answer = Enclosure(y, *np.zeros((2, *y.shape)))
            agrees = (distance(answer, exact) <= bound)[known]
            agreeing += int(agrees.sum())
            wrong += [] if agrees.all() else [f"{document['sample']} {name}"]
    assert not wrong
    assert agreeing > LEAST


def both(op: Op, direction: Direction, inputs: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The exact values and the bounds of float64."""
    exact = op.evaluate(direction, inputs, {})
    bounds = op.bound(direction, inputs, {}, formats.BINARY64)
    return {name: (value, bounds[name]) for name, value in exact.items()}
