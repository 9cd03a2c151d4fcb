"""A share of right results counts every result once; settings are compared with the nearest."""

from typing import Any

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from refkernels import registry
from refkernels.metrology.judgement import judge
from refkernels.reporting import terminal_table
from refkernels.reporting.measure.headline import headline
from refkernels.reporting.measure.inputs import concerned
from refkernels.reporting.measure.scores import score
from refkernels.reporting.measure.settings import SettingEffect, setting_effects
from refkernels.reporting.measure.study import Measurement, Study
from refkernels.reporting.words.numerals import share
from refkernels.reporting.words.report import words_of

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


ELEMENTS = st.tuples(st.sampled_from(list(ANSWERS)), st.none() | st.sampled_from(WRONG))


@given(st.lists(ELEMENTS, min_size=1, max_size=30))
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
    counts = {"elements": 4, "undecided": undecided, "not_correctly_rounded": 1, "range_limited": 2}
    (m,) = Study.of([{**synthetic.sine(), "counts": counts}]).measurements
    assert m.rounded == (3 - undecided, 4 - undecided)
    assert concerned(m) == (2, 4)  # what leaves the range says more than what is merely rounded


def record(op: str, digest: str, **settings: str) -> dict[str, Any]:
    return {
        "kind": "measurement", "op": op, "direction": "forward", "framework": "torch",
        "version": "2.13.0", "device": "cpu", "dtype": "float32", "output": "y", "status": "ok",
        "case": {"name": f"{op}/one", "regime": "one"}, "settings": settings, "digest": digest,
        "verdict": "rounding",
    }  # fmt: skip


RECORDS = [
    record("exp", "a"), record("sin", "b"),
    record("exp", "a", CBWR="AVX2"), record("sin", "c", CBWR="AVX2"),
    record("exp", "a", CBWR="AVX2", OMP="1"), record("sin", "c", CBWR="AVX2", OMP="1"),
]  # fmt: skip


def test_a_target_is_held_to_the_one_with_the_most_of_its_settings() -> None:
    two_settings, one_setting = "torch@CBWR=AVX2,OMP=1", "torch@CBWR=AVX2"
    assert sorted(setting_effects(Study.of(RECORDS)), key=lambda effect: effect.subject) == [
        SettingEffect(one_setting, "torch", 2, 1, ("sin",)),
        SettingEffect(two_settings, one_setting, 2, 0, ()),
    ]


def test_the_first_paragraph_says_which_settings_change_bits() -> None:
    for lang in ("en", "zh"):
        paragraph = " ".join(headline(Study.of(RECORDS), words_of(lang)))
        change, keep = words_of(lang)["settings_change"], words_of(lang)["settings_keep"]
        sentence = change.format(who="torch@CBWR=AVX2", base="torch", share=share(1, 2), ops="sin")
        assert sentence in paragraph
        assert keep.format(who="torch@CBWR=AVX2,OMP=1") in paragraph
        console = Console(width=200, record=True)
        console.print(terminal_table(RECORDS, lang))
        assert sentence in " ".join(console.export_text().split())
