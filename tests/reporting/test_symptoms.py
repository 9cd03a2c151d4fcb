"""One cause takes one line, what matters first; the threads' answers come from the records."""

import pytest
import synthetic

from refkernels.reporting.measure.seeds import seeds, sentences
from refkernels.reporting.measure.study import Study
from refkernels.reporting.measure.symptoms import symptoms

PARAMETERS = {"n": 8, "ratio": 1.0, "high": 9.0}


def bad(op="layernorm", direction="forward", output="y", framework="torch", dtype="float64",
        regime="mean_over_std", verdict="exceeds_bound", flags=(), plain=9.0):  # fmt: skip
    one = synthetic.measurement(op, direction, output, framework, dtype, regime, PARAMETERS)
    one.update(verdict=verdict, flags=list(flags), plain={"ratio": plain})
    one["bound"] = {"max_ratio": 7.0}
    return one


def told(*some):
    return symptoms(Study.of(list(some)))


def test_both_passes_of_one_subject_are_one_symptom():
    (one,) = told(bad(), bad(direction="backward", output="dx"))
    assert one.what == "layernorm forward and backward, float64"


def test_ops_measured_in_the_same_regimes_are_told_together():
    (one,) = told(bad("sin", regime="hard"), bad("cos", regime="hard"))
    assert one.what == "cos and sin forward, float64"
    apart = told(bad("sin", regime="hard"), bad("cos", regime="soft"))
    assert len(apart) == 2


def test_subjects_are_told_together_only_in_the_same_regimes():
    (one,) = told(bad(framework="torch"), bad(framework="numpy"))
    assert one.subjects == ["numpy", "torch"]
    assert len(told(bad(framework="torch"), bad(framework="numpy", regime="eps"))) == 2


def test_two_outputs_with_other_verdicts_in_other_passes_are_two_symptoms():
    first, second = told(
        bad(output="mean", verdict="special_value_mismatch"),
        bad(direction="backward", output="dbias"),
    )
    assert (first.verdict.name, second.verdict.name) == ("special_value_mismatch", "exceeds_bound")


def test_wide_formats_come_before_worse_verdicts_in_sixteen_bits():
    first, _ = told(bad(dtype="float16", verdict="special_value_mismatch"), bad(framework="numpy"))
    assert first.what.endswith("float64")


def test_special_inputs_come_after_ordinary_ones():
    first, second = told(
        bad(regime="specials", verdict="special_value_mismatch"), bad(framework="numpy")
    )
    assert first.subjects == ["numpy"]
    assert second.regimes == {"specials"}


@pytest.mark.parametrize(("plain", "hint"), [(3e8, True), (1e3, False), (1e12, False)])
def test_the_accuracy_of_float32_is_recognised(plain, hint):
    (one,) = told(bad(plain=plain))
    assert ("as accurate as float32" in one.text) == hint


def test_flushed_subnormals_are_one_symptom_in_all_formats():
    flags = ("flushed_subnormals",)
    (one,) = told(bad(flags=flags), bad(flags=flags, dtype="float32"))
    assert "replaced by 0" in one.text


def test_ulp_where_any_result_is_allowed_are_no_largest_error():
    one = bad(verdict="rounding")
    one["worst"].update(ulp_error=8e15, error_over_bound=0.0)
    one["ulp"]["max"] = 8e15
    (taken,) = Study.of([one]).measurements
    assert taken.ulp_max is None
    one["worst"]["error_over_bound"] = 1e-9
    (taken,) = Study.of([one]).measurements
    assert taken.ulp_max == 8e15


def _thread(op, regime, output, direction="forward", **more):
    one = synthetic.measurement(op, direction, output, "torch", "float32", regime, PARAMETERS)
    one["flags"] = []
    return {**one, **more}


def test_the_threads_are_answered_from_the_records():
    pairs = [
        synthetic.agreement(
            "linear", "forward", "y", "float32", f"linear/seed_linear[bias={bias}]",
            "torch", "paddle", 0.6, gap, 3,
        )
        for bias, gap in (("zero", 0.0), ("uniform", 1.2e-4))
    ]  # fmt: skip
    gradient = _thread("layernorm", "seed_layernorm", "dx", "backward")
    gradient["flags"] = ["nonzero_at_zero"]
    gradient["error"]["max_abs_at_zero"] = 0.0014
    study = Study.of([*pairs, gradient, _thread("cos", "seed_pi", "y")])
    found = seeds(study)
    assert [row[1] for row in found.layernorm.rows] == ["dx"]
    said = " ".join(sentences(found))
    for words in ("only where the bias is not zero", "torch gives something else", "beyond 1"):
        assert words in said


def test_a_thread_that_the_records_contradict_is_not_claimed():
    pairs = [
        synthetic.agreement(
            "linear", "forward", "y", "float32", f"linear/seed_linear[bias={bias}]",
            "torch", "paddle", 0.6, 1.2e-4, 3,
        )
        for bias in ("zero", "uniform")
    ]  # fmt: skip
    broken = _thread("cos", "seed_pi", "y", invariants_violated=["abs_at_most_one"])
    assert sentences(seeds(Study.of([*pairs, broken]))) == []


def test_a_seed_in_a_name_is_no_thread():
    pair = synthetic.agreement(
        "linear", "forward", "y", "float32", "linear/k_sweep[K=1,seed=0]", "a", "b", 1.0, 0.0, 0
    )
    assert not seeds(Study.of([pair]))
