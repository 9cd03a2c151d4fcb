"""The scripts of an answer give, in the framework alone, the bits that the tool was given."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from plain_interpreter import PlainInterpreter

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.diagnosis import excerpt
from refkernels.diagnosis.problem import Problem
from refkernels.frameworks import catalog
from refkernels.frameworks.gateway import Session
from refkernels.op import Direction
from refkernels.reporting.answer.script import script

Array = npt.NDArray[Any]
RNG = np.random.default_rng(17)
LARGE = {
    "x": RNG.standard_normal((9, 700)).astype(np.float32),
    "weight": RNG.standard_normal((11, 700)).astype(np.float32),
    "bias": RNG.standard_normal(11).astype(np.float32),
}
SMALL = RNG.standard_normal((2, 3, 5)).astype(np.float32)
ROW = RNG.standard_normal(5).astype(np.float32)
CASES: dict[str, tuple[str, Direction, dict[str, Array], dict[str, Any]]] = {
    "cut linear": ("linear", "forward", LARGE, {}),
    "cut linear backward": (
        "linear", "backward", {"dy": RNG.standard_normal((9, 11)).astype(np.float32), **LARGE}, {}
    ),
    "whole matmul": ("matmul", "forward", {"a": SMALL, "b": SMALL.reshape(2, 5, 3)}, {}),
    "cut layernorm": ("layernorm", "forward", {"x": LARGE["x"]}, {"eps": 1e-3}),
    "layernorm of two axes": (
        "layernorm", "forward", {"x": SMALL, "weight": SMALL[0]},
        {"eps": 1e-6, "normalized_shape": (3, 5)},
    ),
    "whole layernorm backward": (
        "layernorm", "backward", {"dy": SMALL[::-1].copy(), "x": SMALL, "weight": ROW, "bias": ROW},
        {"eps": 1e-5},
    ),
    "cut sine backward": ("sin", "backward", {"dy": LARGE["x"], "x": LARGE["x"]}, {}),
    "one number": ("exp", "forward", {"x": np.array(0.5, np.float32)}, {}),
    "float64": ("tanh", "forward", {"x": SMALL.astype(np.float64)}, {}),
    "float16": ("sqrt", "forward", {"x": np.abs(SMALL).astype(np.float16)}, {}),
    "shared code": ("nll", "forward", {"x": SMALL, "target": np.array([[0, 4, 1], [2, 2, 3]])},
                           {"reduction": "mean"}),
    "rotary": ("rotary", "forward", {"x": SMALL[..., :4], "position": np.arange(3)}, {}),
    "bfloat16": ("matmul", "forward", {"a": SMALL[0].astype(ml_dtypes.bfloat16),
                                       "b": SMALL[1].T.astype(ml_dtypes.bfloat16)}, {}),
}  # fmt: skip
ALL_AT_ONCE = "import runpy, sys\nfor path in sys.argv[1:]:\n    runpy.run_path(path)\n"


def asked(kind: str, session: Session) -> tuple[Any, dict[str, Array]]:
    """The question as evidence, and what the framework answers to all of it."""
    op, direction, inputs, params = CASES[kind]
    reply = session.run(op, direction, inputs, params)
    if reply.status == "unsupported":
        return None, {}
    assert reply.ok, reply.reason
    record = registry.get(op)
    first = next(iter(reply.outputs.values()))
    settings = {**record.params, **params}
    problem = Problem(record, direction, inputs, settings, formats.of(first))
    places = [(name, tuple(n // 2 for n in array.shape)) for name, array in reply.outputs.items()]
    return excerpt.question(problem, {session.spec.name: reply.outputs}, places), reply.outputs


@pytest.mark.parametrize("name", ["numpy", "torch", "paddle", "oneflow", "mindspore"])
def test_a_script_gives_the_same_bits_without_refkernels(
    name: str,
    session_for: Callable[[str], Session],
    plain: Callable[[str], PlainInterpreter],
    tmp_path: Path,
) -> None:
    session = session_for(name)
    source = session.spec.framework.source()
    scripts, wanted = [], []
    for kind in CASES:
        question, _ = asked(kind, session)
        if question is None:
            continue
        text = script(question, name, source, session.info["environment"])
        assert text is not None, kind
        assert "refkernels" not in text
        assert question["whole"] or len(question["elements"]) == 1
        scripts.append(tmp_path / f"{kind}.py")
        scripts[-1].write_text(text, encoding="utf-8")
        for element in question["elements"]:
            answer = element["got"][name]
            place = f"{element['output']}{list(element['index'])}"
            wanted.append((place, answer["hex"], element["exact"]["decimal"]))
    printed = plain(name).run(ALL_AT_ONCE, *map(str, scripts))
    lines = [line for line in printed.splitlines() if " exact: " in line]
    assert len(lines) == len(wanted) >= 6
    for line, (place, bits, exact) in zip(lines, wanted, strict=True):
        assert line.startswith(f"{place} ")
        assert f" {bits} exact: {exact} " in line


def test_what_a_framework_does_not_have_has_no_script() -> None:
    op = registry.get("erf")
    problem = Problem(op, "forward", {"x": ROW}, {}, formats.get("float32"))
    question = excerpt.question(problem, {"numpy": {"y": ROW}}, [("y", (0,))])
    numpy = catalog.get("numpy").framework.source()
    assert script(question, "numpy", numpy) is None
    assert script(question, "nobody", numpy) is None


def test_inputs_too_large_for_a_script_are_read_from_the_case_file() -> None:
    x = RNG.standard_normal((70, 80)).astype(np.float32)
    op = registry.get("layernorm")
    inputs = {"dy": x, "x": x, "weight": x[0]}
    problem = Problem(op, "backward", inputs, {"eps": 1e-5}, formats.get("float32"))
    question = excerpt.question(problem, {"torch": {"dweight": x[0]}}, [("dweight", (3,))])
    assert question["inputs"] is None
    torch = catalog.get("torch").framework.source()
    text = script(question, "torch", torch)
    assert text is not None
    assert 'x = case["input.x"]' in text
    compile(text, "script", "exec")


def test_settings_and_device_are_those_of_the_measurement() -> None:
    op = registry.get("sin")
    problem = Problem(op, "forward", {"x": ROW}, {}, formats.get("float32"))
    question = excerpt.question(problem, {"torch": {"y": ROW}}, [("y", (0,))])
    torch = catalog.get("torch").framework.source()
    environment = {"device": "cuda:0", "settings": {"OMP_NUM_THREADS": "1", "num_threads": "2"}}
    text = script(question, "torch", torch, environment)
    assert text is not None
    assert text.index("os.environ['OMP_NUM_THREADS'] = '1'") < text.index("import torch")
    assert "# Measured with the flag num_threads = 2." in text
    assert "torch.from_numpy(x).to('cuda:0')" in text
