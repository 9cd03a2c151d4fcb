"""One cause takes one line, ordinary inputs first; the threads' answers come from the records."""

import io

import pytest
import synthetic
from rich.console import Console

from refkernels.reporting import terminal_table
from refkernels.reporting.measure.inputs import Input, input_of, loss, told_apart
from refkernels.reporting.measure.seeds import seeds, sentences
from refkernels.reporting.measure.study import Study
from refkernels.reporting.measure.symptoms import (
    MOST_EXPLAINED,
    cards,
    symptoms,
    worth_explaining,
)
from refkernels.reporting.words.report import words_of

PARAMETERS = {"n": 8, "ratio": 1.0, "high": 9.0}
EN = words_of("en")


def bad(op="layernorm", direction="forward", output="y", framework="torch", dtype="float64",
        regime="mean_over_std", verdict="exceeds_bound", flags=(), x="1.5", exact="2.5",
        condition=3.0, beyond=4096, mean=100.0, case=""):  # fmt: skip
    """4096 elements, of which so many are beyond the bound, off by so many ulp on average."""
    one = synthetic.measurement(op, direction, output, framework, dtype, regime, PARAMETERS)
    one.update(verdict=verdict, flags=list(flags), plain={"ratio": 9.0})
    one["case"]["name"] += case
    one["bound"] = {"max_ratio": 7.0}
    one["counts"].update(beyond_bound=beyond, special_value_mismatches=0, expected_specials=0)
    one["condition"]["median"] = condition
    one["ulp"]["mean"] = mean
    one["worst"]["inputs"]["x"]["decimal"] = x
    one["worst"]["exact"]["decimal"] = exact
    return one


def found_on(one, cause, confidence="proven", **more):
    names = ("op", "direction", "dtype", "framework", "version", "device", "settings")
    about = {name: one[name] for name in names}
    return {
        "schema": 1, "kind": "explanation", **about, "case": one["case"]["name"], "status": "ok",
        "cause": cause, "confidence": confidence, "tried": 33, "details": {}, **more,
    }  # fmt: skip


def told(*some):
    return symptoms(Study.of(list(some)))


def kinds(*some):
    return [(one.input, one.kind) for one in told(*some)]


def test_both_passes_and_all_formats_of_one_op_are_one_symptom():
    (one,) = told(bad(), bad(direction="backward", output="dx"), bad(dtype="float32"))
    assert one.what(EN) == "layernorm forward and backward, float32 and float64"


def test_ops_with_one_cause_are_listed_together():
    some = [bad("sin"), bad("cos"), bad("tan")]
    assert [one.ops for one in told(*some)] == [["cos"], ["sin"], ["tan"]]
    causes = [found_on(some[0], "argument_reduction"), found_on(some[1], "argument_reduction")]
    alone, together = sorted(told(*some, *causes), key=lambda one: len(one.ops))
    assert (alone.ops, alone.cause) == (["tan"], None)
    assert sorted(together.ops) == ["cos", "sin"]
    assert together.because(EN, "en").startswith("it loses digits when it reduces large arguments")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, Input.ORDINARY),
        ({"x": "0.0", "exact": "0.0"}, Input.ORDINARY),
        ({"dtype": "float32", "x": "1.8e19"}, Input.ORDINARY),
        ({"dtype": "float32", "x": "1.9e19"}, Input.EDGE),  # 2^64: its square is 2^128
        ({"dtype": "float16", "x": "257"}, Input.EDGE),
        ({"dtype": "float32", "x": "1e-39"}, Input.EDGE),  # subnormal
        ({"dtype": "float32", "exact": "1e-39"}, Input.EDGE),
        ({"x": "1e-39"}, Input.ORDINARY),
        ({"x": "-inf"}, Input.EDGE),
        ({"x": "1.0, nan, ..."}, Input.EDGE),
        ({"dtype": "float32", "condition": 2047.0}, Input.ORDINARY),  # half of 2^22
        ({"dtype": "float32", "condition": 2049.0}, Input.DEMANDING),
        ({"dtype": "float32", "condition": 4.2e6}, Input.EDGE),
        ({"condition": float("nan")}, Input.EDGE),
    ],
)
def test_what_kind_of_input_it_is_follows_from_its_numbers(change, kind):
    (one,) = Study.of([bad(**change)]).measurements
    assert input_of(one) == kind


def test_a_case_whose_answers_are_special_is_an_edge_case():
    one = bad()
    one["counts"]["expected_specials"] = 1
    assert kinds(one) == [(Input.EDGE, "edge")]


def test_ordinary_inputs_come_first_however_wrong_the_others_are():
    some = told(bad(x="inf", verdict="special_value_mismatch"), bad("sin", beyond=1, mean=0.6))
    assert [one.ops for one in some] == [["sin"], ["layernorm"]]


def test_of_ordinary_inputs_what_has_lost_most_comes_first():
    share = bad("sin", beyond=1000)
    digits = bad("cos", mean=9.0)
    whole = bad("tan")
    assert [one.ops[0] for one in told(share, digits, whole)] == ["tan", "cos", "sin"]
    fine = [bad("tan", verdict="rounding", beyond=0, case=f"#{i}") for i in range(30)]
    assert [one.ops[0] for one in told(share, digits, whole, *fine)] == ["cos", "sin", "tan"]


def test_loss_is_the_share_of_the_elements_times_the_share_of_their_digits():
    (one,) = Study.of([bad(beyond=1024, mean=2.0**17 - 1)]).measurements
    assert loss(one) == pytest.approx(0.25 * 17 / 51, rel=1e-12)
    (all_lost,) = Study.of([bad(mean=1e300)]).measurements
    assert loss(all_lost) == 1.0


def test_wide_formats_come_before_worse_verdicts_in_sixteen_bits():
    first, _ = told(bad("sin", dtype="float16", verdict="special_value_mismatch"), bad(mean=2.0))
    assert first.ops == ["layernorm"]


def test_what_a_more_ordinary_input_shows_is_not_repeated():
    (one,) = told(bad(), bad(condition=1e9, case="#2"), bad(x="nan", case="#3"))
    assert one.input == Input.ORDINARY
    worse = bad(x="nan", case="#3", verdict="special_value_mismatch")
    assert [one.input for one in told(bad(), worse)] == [Input.ORDINARY, Input.EDGE]


def test_the_kind_says_what_to_do():
    assert kinds(bad()) == [(Input.ORDINARY, "report")]
    inside = bad(verdict="rounding", flags=["unusual"])
    assert kinds(inside) == [(Input.ORDINARY, "inside")]
    assert kinds(bad(), found_on(bad(), "eps_hat")) == [(Input.ORDINARY, "design")]
    ours = bad(framework="numpy") | {"formula": "NumPy formula"}
    assert kinds(ours) == [(Input.ORDINARY, "formula")]
    tf32 = [bad("linear", framework=name, dtype="float32") for name in ("torch", "oneflow")]
    causes = [found_on(one, "tf32_inputs") for one in tf32]
    some = {one.subject: one.kind for one in told(*tf32, *causes)}
    assert some == {"torch": "design", "oneflow": "report"}  # who documents the switch


def test_a_cause_that_a_record_does_not_bear_out_is_its_name():
    hostile = found_on(bad(), "scale_factor", details={"named": "{0.__class__}"})
    (one,) = told(bad(), hostile)
    assert one.because(EN, "en") == "it scale_factor (proven)"
    (one,) = told(bad(), found_on(bad(), None))
    assert one.because(EN, "en") == "cause not found; 33 hypotheses tried"


def test_a_card_has_five_lines_and_the_rest_folded():
    some = [bad(op, regime=op) for op in ("sin", "cos", "tan", "exp", "log", "erf", "tanh")]
    (card,) = cards(Study.of([*some, bad("sqrt", x="nan")]))
    assert [len(part) for part in (card.first, card.further, card.edges)] == [5, 2, 1]
    assert (card.measurements, card.fine) == (8, 0)


def test_what_is_on_cards_is_explained_until_the_seat_has_its_share():
    ops = [f"op{number}" for number in range(20)]
    some, known = [bad(op) for op in ops], []
    for _ in range(20):
        wanted = worth_explaining(Study.of([*some, *known]))
        if not wanted:
            break
        known += [found_on(one.record, "argument_reduction") for one in wanted]
    assert len(known) == MOST_EXPLAINED
    assert worth_explaining(Study.of([*some, *known])) == []


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
    said = " ".join(sentences(found, EN))
    for words in ("only where the bias is not zero", "return something else: torch", "beyond 1"):
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
    assert sentences(seeds(Study.of([*pairs, broken])), EN) == []


def test_a_seed_in_a_name_is_not_a_thread():
    pair = synthetic.agreement(
        "linear", "forward", "y", "float32", "linear/k_sweep[K=1,seed=0]", "a", "b", 1.0, 0.0, 0
    )
    assert not seeds(Study.of([pair]))


def test_an_answer_is_shown_in_enough_digits_to_differ_from_the_exact_one():
    assert told_apart("0.25", "0.5") == ("0.25", "0.5")
    assert told_apart("0.786355145112", "0.786355145009") == ("0.786355145112", "0.786355145009")
    got, exact = told_apart("2.400985010000001", "2.400985010000004")
    assert got != exact
    assert told_apart("1.5", "1.5") == ("1.5", "1.5")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("height", "whole"), [(24, 1), (60, 2)])
def test_a_cause_that_does_not_fit_beside_its_symptom_has_lines_of_its_own(lang, height, whole):
    seats = ["torch", "paddle", "oneflow"]
    some = [bad(framework=seat, op=op) for seat in seats for op in ("layernorm", "sin")]
    causes = [found_on(one, "float32_statistics") for one in some[::2]]
    causes += [found_on(one, "argument_reduction") for one in some[1::2]]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table([*some, *causes], lang, height=height))
    text = "".join(console.export_text().split())
    words = words_of(lang)
    for card in cards(Study.of([*some, *causes])):
        told = ["".join(one.because(words, lang).split()) for one in card.first]
        assert len(told) == 2
        assert sum(text.count(cause) == len(seats) for cause in told) >= whole
