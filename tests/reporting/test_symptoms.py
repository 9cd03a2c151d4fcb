"""One cause takes one line, ordinary inputs first; the threads' answers come from the records."""

import io

import pytest
import synthetic
from rich.console import Console

from refkernels.reporting import terminal_table
from refkernels.reporting.measure.inputs import Input, distinguishing_digits, input_of, loss
from refkernels.reporting.measure.pages import Report
from refkernels.reporting.measure.study import Study
from refkernels.reporting.measure.symptoms import MOST_EXPLAINED, cards, symptoms, worth_explaining
from refkernels.reporting.measure.threads import sentences, threads_of
from refkernels.reporting.words.report import words_of

PARAMETERS = {"n": 8, "ratio": 1.0, "high": 9.0}
EN = words_of("en")


def bad(op="layernorm", direction="forward", output="y", framework="torch", dtype="float64",
        regime="mean_over_std", verdict="exceeds_bound", flags=(), x="1.5", exact="2.5",
        condition=3.0, beyond=4096, mean=100.0, case=""):  # fmt: skip
    """4096 elements, `beyond` of them beyond the bound, off by `mean` ulp on average."""
    record = synthetic.measurement(op, direction, output, framework, dtype, regime, PARAMETERS)
    record.update(verdict=verdict, flags=list(flags), plain={"ratio": 9.0})
    record["case"]["name"] += case
    record["bound"] = {"max_ratio": 7.0}
    record["counts"].update(beyond_bound=beyond, special_value_mismatches=0, expected_specials=0)
    record["condition"]["median"] = condition
    record["ulp"]["mean"] = mean
    record["worst"]["inputs"]["x"]["decimal"] = x
    record["worst"]["exact"]["decimal"] = exact
    record["worst"]["got"]["hex"] = "0x1.b0dbccf3c4ad5p-1"  # it takes a float64
    return record


def found_on(record, cause, confidence="proven", **more):
    names = ("op", "direction", "dtype", "framework", "version", "device", "settings")
    about = {name: record[name] for name in names}
    return {
        "schema": 1, "kind": "explanation", **about, "case": record["case"]["name"], "status": "ok",
        "cause": cause, "confidence": confidence, "tried": 33, "details": {}, **more,
    }  # fmt: skip


def symptoms_of(*records):
    return symptoms(Study.of(list(records)))


def kinds(*records):
    return [(symptom.input, symptom.kind) for symptom in symptoms_of(*records)]


def test_both_passes_and_all_formats_of_one_op_are_one_symptom():
    (symptom,) = symptoms_of(bad(), bad(direction="backward", output="dx"), bad(dtype="float32"))
    assert symptom.what(EN) == "layernorm forward and backward, float32 and float64"


def test_ops_with_one_cause_are_listed_together():
    records = [bad("sin"), bad("cos"), bad("tan")]
    assert [symptom.ops for symptom in symptoms_of(*records)] == [["cos"], ["sin"], ["tan"]]
    causes = [
        found_on(records[0], "argument_reduction"),
        found_on(records[1], "argument_reduction"),
    ]
    alone, together = sorted(symptoms_of(*records, *causes), key=lambda symptom: len(symptom.ops))
    assert (alone.ops, alone.cause) == (["tan"], None)
    assert sorted(together.ops) == ["cos", "sin"]
    assert together.because(EN).startswith("it loses digits when it reduces large arguments")


def in_float32(op, answer="0x1.8ab7e0p+2", **more):
    """A record whose worst float64 answer is that."""
    record = bad(op, **more)
    record["worst"]["got"] = {"decimal": str(float.fromhex(answer)), "hex": answer}
    return record


def test_ops_whose_float64_answers_are_float32_numbers_are_one_symptom():
    records = [in_float32("sin"), in_float32("cos"), in_float32("cos", case="#2"),
               in_float32("tan", "0x1.8ab7e0f19cab6p+6")]  # fmt: skip
    listed = symptoms_of(*records)
    assert [symptom.ops for symptom in listed] == [["cos", "sin"], ["tan"]]
    assert [symptom.cause for symptom in listed] == ["float32_cast", None]
    assert "worst one of each of 3 measurements" in listed[0].because(EN)
    joined, _ = symptoms_of(*records, found_on(records[0], "float32_cast"))
    assert joined.example.op == "sin"
    assert joined.because(EN).startswith("it computes in float32")


@pytest.mark.parametrize(
    "answers",
    [
        ["0x1.0p+0"],  # short: it fits whatever was computed
        ["0x1.8ab7e0p+2", "0x1.8ab7e0f19cab6p+6"],  # another answer of the output does not fit
        ["0x1.8ab7e0p+200"],  # no float32
        ["nan"],
    ],
)
def test_answers_without_the_signature_of_float32(answers):
    records = [in_float32("sin", text, case=f"#{n}") for n, text in enumerate(answers)]
    (symptom,) = symptoms_of(*records)
    assert (symptom.float32, symptom.cause) == (0, None)


def test_a_float32_answer_in_float32_says_nothing():
    (symptom,) = symptoms_of(in_float32("sin", dtype="float32"))
    assert symptom.float32 == 0


def test_a_signature_does_not_hide_another_output_that_is_explained():
    other = bad("cos", direction="backward", output="dx")
    listed = symptoms_of(in_float32("cos"), other, found_on(other, "rounded_constants"))
    assert {symptom.cause for symptom in listed} == {"float32_cast", "rounded_constants"}
    (covered,) = symptoms_of(in_float32("cos"), other)
    assert covered.cause == "float32_cast"


def test_an_output_that_few_cases_have_counts_in_all_of_them():
    buffer = bad("rmsprop", output="buf", mean=1e300)
    others = [bad("rmsprop", output="param", verdict="rounding", beyond=0, case=f"#{n}")
              for n in range(99)]  # fmt: skip
    assert [symptom.ops for symptom in symptoms_of(buffer, *others, bad("sin", mean=9.0))] == [
        ["sin"],
        ["rmsprop"],
    ]


def test_a_formula_of_ours_comes_after_every_kernel():
    ours = bad(framework="numpy", mean=1e300) | {"formula": "NumPy formula"}
    assert [card.subject for card in cards(Study.of([ours, bad(mean=1.0)]))] == [
        "torch",
        "NumPy formula",
    ]


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
    (measurement,) = Study.of([bad(**change)]).measurements
    assert input_of(measurement) == kind


def test_a_case_whose_answers_are_special_is_an_edge_case():
    record = bad()
    record["counts"]["expected_specials"] = 1
    assert kinds(record) == [(Input.EDGE, "edge")]


def test_ordinary_inputs_come_first_however_wrong_the_others_are():
    listed = symptoms_of(
        bad(x="inf", verdict="special_value_mismatch"), bad("sin", beyond=1, mean=0.6)
    )
    assert [symptom.ops for symptom in listed] == [["sin"], ["layernorm"]]


def test_among_ordinary_inputs_the_largest_loss_comes_first():
    share = bad("sin", beyond=1000)
    digits = bad("cos", mean=9.0)
    whole = bad("tan")
    assert [symptom.ops[0] for symptom in symptoms_of(share, digits, whole)] == [
        "tan",
        "cos",
        "sin",
    ]
    fine = [bad("tan", verdict="rounding", beyond=0, case=f"#{i}") for i in range(30)]
    assert [symptom.ops[0] for symptom in symptoms_of(share, digits, whole, *fine)] == [
        "cos",
        "sin",
        "tan",
    ]


def test_loss_is_the_share_of_the_elements_times_the_share_of_their_digits():
    (measurement,) = Study.of([bad(beyond=1024, mean=2.0**17 - 1)]).measurements
    assert loss(measurement) == pytest.approx(0.25 * 17 / 51, rel=1e-12)
    (all_lost,) = Study.of([bad(mean=1e300)]).measurements
    assert loss(all_lost) == 1.0


def test_wide_formats_come_before_worse_verdicts_in_sixteen_bits():
    first, _ = symptoms_of(
        bad("sin", dtype="float16", verdict="special_value_mismatch"), bad(mean=2.0)
    )
    assert first.ops == ["layernorm"]


def test_what_a_more_ordinary_input_shows_is_not_repeated():
    (symptom,) = symptoms_of(bad(), bad(condition=1e9, case="#2"), bad(x="nan", case="#3"))
    assert symptom.input == Input.ORDINARY
    worse = bad(x="nan", case="#3", verdict="special_value_mismatch")
    assert [symptom.input for symptom in symptoms_of(bad(), worse)] == [Input.ORDINARY, Input.EDGE]


def test_the_kind_says_what_to_do():
    assert kinds(bad()) == [(Input.ORDINARY, "report")]
    inside = bad(verdict="rounding", flags=["unusual"])
    assert kinds(inside) == [(Input.ORDINARY, "inside")]
    assert kinds(bad(), found_on(bad(), "eps_hat")) == [(Input.ORDINARY, "design")]
    ours = bad(framework="numpy") | {"formula": "NumPy formula"}
    assert kinds(ours) == [(Input.ORDINARY, "formula")]
    tf32 = [bad("linear", framework=name, dtype="float32") for name in ("torch", "oneflow")]
    causes = [found_on(record, "tf32_inputs") for record in tf32]
    by_subject = {symptom.subject: symptom.kind for symptom in symptoms_of(*tf32, *causes)}
    assert by_subject == {"torch": "design", "oneflow": "report"}  # who documents the switch


def test_a_detail_that_is_not_there_is_left_open_and_one_that_is_there_is_printed_as_it_stands():
    hostile = found_on(bad(), "scale_factor", details={"named": "{0.__class__}"})
    (symptom,) = symptoms_of(bad(), hostile)
    right = "it gives the right result times ? ({0.__class__}) (proven)"
    assert symptom.because(EN) == right
    (symptom,) = symptoms_of(bad(), found_on(bad(), None))
    assert symptom.because(EN) == "cause not found; 33 hypotheses tried"


def test_a_card_has_five_lines_and_the_rest_folded():
    records = [bad(op, regime=op) for op in ("sin", "cos", "tan", "exp", "log", "erf", "tanh")]
    (card,) = cards(Study.of([*records, bad("sqrt", x="nan")]))
    assert [len(part) for part in (card.first, card.further, card.edges)] == [5, 2, 1]
    assert (card.asked, card.fine) == (8, 0)


def explained_in_turn(records, cause, every=False):
    """What a report asks for, again and again, and is told: `cause` of a measurement and place."""
    explained = []
    for _ in range(20):
        wanted = worth_explaining(Study.of([*records, *explained]), every=every)
        explained += [
            found_on(measurement.record, cause(measurement, len(explained) + place))
            for place, measurement in enumerate(wanted)
        ]
    return explained


def test_what_is_on_cards_is_explained_until_the_target_has_its_share():
    records = [bad(f"op{number}") for number in range(20)]
    explained = explained_in_turn(records, lambda *_: "argument_reduction")
    assert len(explained) == MOST_EXPLAINED


def test_every_symptom_is_explained_if_that_is_asked_for():
    records = [bad(f"op{number}") for number in range(20)]
    explained = explained_in_turn(records, lambda _, place: f"cause{place}", every=True)
    shown = symptoms_of(*records, *explained)
    assert sorted(symptom.cause for symptom in shown) == sorted(each["cause"] for each in explained)
    assert len(explained) == 20


def with_params(record, **params):
    record["case"]["params"] = params
    return record


def test_a_cause_of_other_options_is_not_hidden_behind_that_of_the_worst_case():
    """Paddle clips exponents, and divides its mean by all rows where some are ignored."""
    plain = bad("cross_entropy", case="a", mean=1e9)
    nearly = bad("cross_entropy", case="b", mean=1e8)
    ignored = with_params(bad("cross_entropy", case="c", mean=5.0), ignore_index=-100)
    records = [plain, nearly, ignored]
    causes = {"a": "clipped_exponent", "b": "clipped_exponent", "c": "all_rows_denominator"}
    explained = explained_in_turn(records, lambda m, _: causes[m.case[-1]])
    assert len(explained) == 2
    found = {
        s.cause: {m.case[-1] for m in s.measurements} for s in symptoms_of(*records, *explained)
    }
    assert found == {"clipped_exponent": {"a", "b"}, "all_rows_denominator": {"c"}}
    for record in explained:
        record["script"] = f"# {record['cause']}"
    scripts = Report.of([*records, *explained]).scripts
    assert sorted(scripts.values()) == ["# all_rows_denominator", "# clipped_exponent"]


@pytest.mark.parametrize(
    ("over_bound", "flags", "rounding"),
    [(0.3, [], True), (1.5, [], False), (0.3, ["unusual"], False)],
)
def test_a_limit_that_rounding_alone_crosses_needs_no_cause(over_bound, flags, rounding):
    record = bad("log1p", verdict="invariant_violated", flags=flags)
    record["bound"]["max_ratio"] = over_bound
    (symptom,) = symptoms_of(record, found_on(record, None))
    text = symptom.because(words_of("en"))
    assert text.startswith("by rounding alone, at most") == rounding
    assert text.startswith("cause not found; 33 hypotheses tried") != rounding


def test_options_that_are_numbers_and_lines_without_a_cause_are_explained_once():
    large, small = (with_params(bad(case=str(lr)), lr=lr, nesterov=True) for lr in (1.0, 0.1))
    assert worth_explaining(Study.of([large, small, found_on(large, "eps_hat")])) == []
    other = with_params(bad(case="other"), lr=0.1, nesterov=False)
    (open_option,) = worth_explaining(Study.of([large, other, found_on(large, "eps_hat")]))
    assert open_option.record is other
    assert worth_explaining(Study.of([large, other, found_on(large, None)])) == []


def test_a_symptom_knows_the_findings_that_it_stands_for():
    worst, covered, other = bad(), bad(case="a", x="nan"), bad("exp")
    found = {s.example.op: {m.case for m in s.covered} for s in symptoms_of(worst, covered, other)}
    names = {each["op"]: set() for each in (worst, covered, other)}
    for each in (worst, covered, other):
        names[each["op"]].add(each["case"]["name"])
    assert found == names


def test_an_error_where_any_result_is_allowed_is_no_largest_error():
    record = bad(verdict="rounding")
    record["worst"].update(ulp_error=8e15, error_over_bound=0.0)
    record["ulp"]["max"] = 8e15
    (measurement,) = Study.of([record]).measurements
    assert measurement.ulp_max is None
    record["worst"]["error_over_bound"] = 1e-9
    (measurement,) = Study.of([record]).measurements
    assert measurement.ulp_max == 8e15


def _thread(op, regime, output, direction="forward", **more):
    record = synthetic.measurement(op, direction, output, "torch", "float32", regime, PARAMETERS)
    record["flags"] = []
    return {**record, **more}


def _pairs(zero, uniform):
    """How far two frameworks are apart without a bias, and with one."""
    about, of = ("linear", "forward", "y", "float32"), ("torch", "paddle")
    return [
        synthetic.agreement(*about, f"linear/seed_linear[bias={bias}]", *of, 0.6, gap, 3)
        for bias, gap in (("zero", zero), ("uniform", uniform))
    ]


def test_the_threads_are_answered_from_the_records():
    pairs = _pairs(0.0, 1.2e-4)
    gradient = _thread("layernorm", "seed_layernorm", "dx", "backward")
    gradient["flags"] = ["nonzero_at_zero"]
    gradient["error"]["max_abs_at_zero"] = 0.0014
    study = Study.of([*pairs, gradient, _thread("cos", "seed_pi", "y")])
    threads = threads_of(study)
    assert [row[1] for row in threads.tables["thread:layernorm"]] == ["dx"]
    text = " ".join(sentences(threads, EN))
    for words in ("only where the bias is not zero", "return something else: torch", "beyond 1"):
        assert words in text


def test_a_thread_that_the_records_contradict_is_not_claimed():
    pairs = _pairs(1.2e-4, 1.2e-4)
    broken = _thread("cos", "seed_pi", "y", invariants_violated=["abs_at_most_one"])
    assert sentences(threads_of(Study.of([*pairs, broken])), EN) == []


def test_a_seed_in_a_name_is_not_a_thread():
    pair = synthetic.agreement(
        "linear", "forward", "y", "float32", "linear/k_sweep[K=1,seed=0]", "a", "b", 1.0, 0.0, 0
    )
    assert not threads_of(Study.of([pair]))


def test_an_answer_is_shown_in_enough_digits_to_differ_from_the_exact_one():
    assert distinguishing_digits("0.25", "0.5") == ("0.25", "0.5")
    pair = "0.786355145112", "0.786355145009"
    assert distinguishing_digits(*pair) == pair
    got, exact = distinguishing_digits("2.400985010000001", "2.400985010000004")
    assert got != exact
    assert distinguishing_digits("1.5", "1.5") == ("1.5", "1.5")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("height", "whole"), [(24, 1), (60, 2)])
def test_a_cause_that_does_not_fit_beside_its_symptom_has_lines_of_its_own(lang, height, whole):
    targets = ["torch", "paddle", "oneflow"]
    records = [bad(framework=target, op=op) for target in targets for op in ("layernorm", "sin")]
    causes = [found_on(record, "float32_statistics") for record in records[::2]]
    causes += [found_on(record, "argument_reduction") for record in records[1::2]]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table([*records, *causes], lang, height=height))
    text = "".join(console.export_text().split())
    words = words_of(lang)
    for card in cards(Study.of([*records, *causes])):
        reasons = ["".join(line.because(words).split()) for line in card.first]
        assert len(reasons) == 2
        assert sum(text.count(cause) == len(targets) for cause in reasons) >= whole


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("height", [24, 30, 50])
def test_the_summary_fits_one_screen_and_cuts_nothing(lang, height):
    targets = ["torch", "paddle", "oneflow", "mindspore"]
    ops = ["layernorm", "softmax", "log_softmax", "gelu_tanh"]
    records = [bad(framework=target, op=op) for target in targets for op in ops]
    names = ("quotient_rule", "float32_hyperparameters", "argument_reduction", "float32_constants")
    causes = [found_on(record, name) for record, name in zip(records, 4 * names, strict=True)]
    formulas = [bad(framework=target) | {"formula": f"{target} ops"} for target in targets]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table([*records, *causes, *formulas], lang, height=height))
    text = console.export_text()
    assert text.count("\n") <= height - 3
    assert "…" not in text
    for target in targets:
        heads = (f"{target}:", f"{target}：")
        assert sum(line.startswith(heads) for line in text.splitlines()) == 1


def test_what_gave_no_answer_comes_first_and_counts_in_the_share() -> None:
    """One answer of eight, from a user's kernel: in the terminal, Markdown and on the page. A
    direction that a kernel does not compute was not asked; a case that it refuses was."""
    kernel = "mine.py:softmax"
    answered = bad("softmax", verdict="rounding", dtype="float32", beyond=0)
    records = [{**answered, "framework": kernel, "version": ""}]
    for status, direction, reason in (
        *[("error", "forward", "ValueError: one shape only")] * 4,
        *[("unsupported", "forward", "softmax has no axis")] * 3,
        *[("unsupported", "backward", "softmax computes softmax forward only")] * 2,
    ):
        records.append(
            synthetic.failure("softmax", direction, "y", kernel, "float32", status, reason)
        )
    study = Study.of(records)
    (card,) = cards(study)
    assert (card.asked, card.fine, len(card.unanswered)) == (8, 1, 7)
    for lang, first, share, wrong in (
        ("en", "7 of 8 measurements gave no answer", "12.5 %", "Nothing beyond"),
        ("zh", "8 次测量中有 7 次没有给出结果", "12.5 %", "只有正常的舍入误差"),
    ):
        buffer = io.StringIO()
        Console(file=buffer, width=400).print(terminal_table(records, lang))
        report = Report(study, lang, starmap=synthetic.undrawn)
        for text in (buffer.getvalue(), report.markdown(), report.html()):
            assert first in text
            words = " ".join(text.split())  # a line may end within a reason
            assert words.index("ValueError: one shape only") < words.index(share)
            assert "100 %" not in text.split("<main>")[-1].split("How to read")[0]
            assert wrong not in text
