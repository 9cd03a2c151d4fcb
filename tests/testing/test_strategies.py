"""`testing.strategies`: questions by signature, for every op, which Hypothesis shrinks."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.testing import strategies

FEW = settings(
    max_examples=5,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


OPS = ("sin", "pow", "attention", "conv2d", "cross_entropy", "batch_norm", "rotary", "adam")


@pytest.mark.parametrize("name", OPS)  # a signature of each kind
def test_the_plain_algorithm_answers_what_is_drawn(name: str) -> None:
    op, drawn = registry.get(name), []
    direction = op.directions[-1]

    @FEW
    @given(strategies.cases(name, direction=direction, max_length=4))
    def answer(case: strategies.KernelCase) -> None:
        plain = op.plain(direction, case.inputs, case.params, formats.get("float32"))
        assert set(plain) <= set(op.names(direction))
        assert {a.dtype for n, a in case.inputs.items() if n not in op.kinds} == {np.dtype("f4")}
        drawn.append(case)

    answer()
    assert drawn


@given(strategies.cases("softmax", lengths={"n": 3}, elements=st.just(2.0)))
@settings(max_examples=20, deadline=None)
def test_lengths_and_elements_are_as_asked(case: strategies.KernelCase) -> None:
    x = case.inputs["x"]
    assert x.shape[-1] == 3
    assert (x == 2).all()
    case.check(np.full_like(x, 1 / np.float32(3)))


def test_a_failure_is_shrunk_to_few_simple_numbers_that_are_printed() -> None:
    @given(strategies.cases("softmax"))
    @settings(deadline=None, database=None, max_examples=100)
    def unshifted(case: strategies.KernelCase) -> None:
        with np.errstate(all="ignore"):
            e = np.exp(case.inputs["x"])
            case.check(e / e.sum(-1, keepdims=True))

    with pytest.raises(AssertionError) as failed:
        unshifted()
    notes = "".join(failed.value.__notes__)
    assert "<softmax/drawn float32 forward: x=[" in notes
    assert notes.count(",") <= 4, notes  # one element, or two


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"op": "softmaxx"}, "did you mean 'softmax'"),
        ({"op": "softmax", "direction": "up"}, "no direction 'up'"),
        ({"op": "sgd", "direction": "backward"}, "no direction 'backward'"),
        ({"op": "softmax", "params": {"axes": 1}}, "no param 'axes': choose one of axis"),
        ({"op": "softmax", "elements": {"y": st.just(1.0)}}, "no input 'y'"),
        ({"op": "softmax", "lengths": {"m": 3}}, "no letter 'm'"),
        ({"op": "softmax", "max_length": 0}, "at least one element"),
        ({"op": "softmax", "elements": 2.0}, "elements must map .* type float"),
        ({"op": "softmax", "lengths": 3}, "lengths must map .* type int"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises((ValueError, TypeError), match=reason):
        strategies.cases(**arguments)  # type: ignore[arg-type]


def test_without_hypothesis_a_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import refkernels.testing.strategies"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith("needs Hypothesis: pip install hypothesis")
