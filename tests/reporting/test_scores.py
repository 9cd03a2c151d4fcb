"""A share of correctly rounded results counts every result once, special values among them."""

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from refkernels import registry
from refkernels.metrology.judgement import judge
from refkernels.reporting.measure.inputs import concerned
from refkernels.reporting.measure.scores import score
from refkernels.reporting.measure.study import Measurement, Study

# tanh is the input itself, or 1 or -1, or what float32's tanh of 0.5 is; each exact answer is
# far from the middle between two floats.
ANSWERS = {
    0.0: 0.0,
    1e-20: 1e-20,
    0.5: float.fromhex("0x1.d9353ep-2"),
    50.0: 1.0,
    -np.inf: -1.0,
    np.nan: np.nan,
}
TANH = registry.get("tanh")
WRONG = (0.25, np.nan, np.inf, -np.inf)


def measurement(x: np.ndarray, got: np.ndarray) -> Measurement:
    record = synthetic.measurement("tanh", "forward", "y", "torch", "float32", "range", {"high": 9})
    bound = TANH.forward_bound(x, format="float32")
    judged = judge(
        TANH, "forward", "y", got, TANH.forward(x), bound=bound, inputs={"x": x}, params={}
    )
    record.update(judged)
    return Study.of([record]).measurements[0]


@given(
    st.lists(
        st.tuples(st.sampled_from(list(ANSWERS)), st.none() | st.sampled_from(WRONG)),
        min_size=1,
        max_size=30,
    )
)
def test_each_result_is_counted_once(drawn: list[tuple[float, float | None]]) -> None:
    x = np.array([place for place, _ in drawn], np.float32)
    right = np.array([ANSWERS[place] for place, _ in drawn], np.float32)
    planted = [right[i] if wrong is None else wrong for i, (_, wrong) in enumerate(drawn)]
    got = np.array(planted, np.float32)
    same = int(np.sum((got == right) | (np.isnan(got) & np.isnan(right))))
    m = measurement(x, got)
    assert m.rounded == (same, len(drawn))
    assert (score([m, m]).correct, score([m, m]).decided) == (2 * same, 2 * len(drawn))
    part, whole = concerned(m)
    assert part == whole - same or m.verdict.name != "rounding"


@pytest.mark.parametrize("undecided", [0, 1, 3])
def test_what_could_not_be_decided_is_not_counted(undecided: int) -> None:
    record = synthetic.measurement("sin", "forward", "y", "torch", "float32", "range", {"high": 9})
    record["counts"] = {"elements": 4, "undecided": undecided, "not_correctly_rounded": 1}
    assert Study.of([record]).measurements[0].rounded == (3 - undecided, 4 - undecided)
