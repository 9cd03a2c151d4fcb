"""The report: every figure from the records, worst first, safe, whole, the same every time."""

import csv
import itertools
import math
import operator
import os
import re

import pytest
import synthetic
from rich.cells import cell_len
from rich.console import Console
from test_symptoms import bad

from refkernels.cli.shared import pages
from refkernels.reporting import terminal_table, write_report
from refkernels.reporting.measure.findings import findings, point_text
from refkernels.reporting.measure.pages import Report
from refkernels.reporting.measure.scores import blocks
from refkernels.reporting.measure.series import growth_plots
from refkernels.reporting.measure.study import Study
from refkernels.reporting.measure.symptoms import cards
from refkernels.reporting.templating import page_script
from refkernels.reporting.words.numerals import all_digits, figure
from refkernels.reporting.words.report import words_of
from refkernels.reporting.words.vocabulary import LEVEL_WORDS, WIDE
from refkernels.runs.sweeps import pool
from refkernels.target_names import parse

FIGURES = ("max_ulp", "mean_ulp", "error_over_bound", "error_over_plain", "condition_median")


def numbers(value):
    """Every number in a record, however deep."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from numbers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def text_of(records, lang="en", width=80, everything=False):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(terminal_table(records, lang, everything=everything))
    return console.export_text()


@pytest.fixture(scope="module")
def records():
    base = synthetic.records()
    odd = synthetic.measurement("cos", "forward", "y", "torch", "float16", "range", {"high": 9.0})
    odd["verdict"], odd["invariants_violated"] = "invariant_violated", ["|cos x| <= 1"]
    return [*base, odd]


@pytest.fixture(scope="module")
def folder(records, tmp_path_factory):
    """Twenty thousand records, as a full run has: the base records, then copies of other names."""
    many = [
        record for record in records if record["kind"] != "measurement" or record["status"] == "ok"
    ]
    copies = list(records)
    for number in itertools.count():
        for record in many:
            case = record.get("case")
            if isinstance(case, dict):
                record = {**record, "case": {**case, "name": f"{case['name']}#{number}"}}
            copies.append(record)
        if len(copies) >= 20_000:
            break
    return synthetic.write(tmp_path_factory.mktemp("report"), copies[:20_000])


@pytest.fixture(scope="module")
def written(folder):
    """The files of the one report of many records that tests share, with a plot of each kind."""
    return write_report(folder, starmap=synthetic.first_drawn)


@pytest.fixture(scope="module")
def page(written, folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_page_is_whole_and_needs_no_network(page, folder):
    parser = synthetic.Page(page)
    inside = {source[1:] for source in parser.sources if source.startswith("#")}
    beside = {source for source in parser.sources if not source.startswith("#")}
    assert inside <= set(parser.ids)
    assert {"figures.csv", "records.jsonl", "plots/error-over-bound.svg"} <= beside
    assert all((folder / source).is_file() for source in beside)
    assert len(parser.ids) == len(set(parser.ids))
    assert "@import" not in page
    assert parser.titles == 0  # nothing waits for a mouse


def test_every_figure_beside_the_page_stands_in_the_records(folder, records):
    known = set(numbers(records))
    with open(folder / "figures.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    shown = [float(row[name]) for row in rows for name in FIGURES if row[name]]
    assert len(shown) > 100
    assert [value for value in shown if value not in known] == []


def test_every_verdict_has_its_own_class_word_and_glyph(page):
    assert len({verdict.glyph for verdict in LEVEL_WORDS}) == len(LEVEL_WORDS)
    for verdict in LEVEL_WORDS:
        assert f'class="pill {verdict.style}"' in page
        assert f"{verdict.glyph} {verdict.short}" in page


@pytest.fixture(scope="module")
def small(records, tmp_path_factory):
    """A folder with few records, and the bytes of its report's files."""
    subset = [
        record
        for record in records
        if record.get("op") == "cos" and record.get("dtype") == "float32"
    ]
    folder = synthetic.write(tmp_path_factory.mktemp("small"), subset)
    return folder, {path: path.read_bytes() for path in write_report(folder)}


def test_the_same_records_give_the_same_bytes(small):
    folder, first = small
    assert any(path.suffix == ".svg" for path in first)
    again = {path: path.read_bytes() for path in write_report(folder)}
    assert list(again.items()) == list(first.items())
    assert not list(folder.glob("**/*.part"))


def test_plots_drawn_in_several_processes_have_the_same_bytes(small, monkeypatch):
    folder, here = small
    monkeypatch.setattr(pages, "_FEWEST_CALLS", 1)
    monkeypatch.setattr(pool, "usable_cores", lambda: 2)
    assert os.getpid() not in pages.starmap(os.getpid, [(), ()])
    written = write_report(folder, starmap=pages.starmap)
    assert {path: path.read_bytes() for path in written} == here


def test_findings_come_by_input_then_format_then_bound_then_loss(records):
    study = Study.of(records)
    listed = findings(study)
    ranks = [(f.input, f.dtype not in WIDE, f.verdict.name == "unusual", -f.loss) for f in listed]
    assert ranks == sorted(ranks)
    assert len({finding.verdict.name for finding in listed}) == 4
    assert len({finding.input for finding in listed}) >= 2


def test_scores_come_worst_first(records):
    study = Study.of(records)
    board = [block.rows[0].badness[:2] for block in blocks(study)]
    assert board == sorted(board)
    for block in blocks(study):
        assert block.rows == sorted(block.rows, key=lambda row: row.badness)
        wide = [row.dtype in WIDE for row in block.rows]
        assert wide == sorted(wide, reverse=True)


def test_a_finding_has_the_figures_of_one_output(records):
    study = Study.of(records)
    listed = findings(study)
    assert listed
    of_output = operator.attrgetter("op", "direction", "dtype", "subject", "output")
    for finding in listed:
        mine = [each for each in study.measurements if of_output(each) == of_output(finding)]
        assert finding.example in mine
        assert finding.ulp in [measurement.ulp_max for measurement in mine]
        assert finding.bound in [measurement.number("bound", "max_ratio") for measurement in mine]
    assert len({of_output(finding)[:4] for finding in listed}) < len(listed)


def test_where_no_digit_is_right_the_absolute_error_is_shown():
    """A gradient of 1e-12 whose answer is 3e-9."""
    layernorms = [
        record for record in synthetic.records() if record.get("op") in (None, "layernorm")
    ]
    layernorms = [
        record for record in layernorms if record.get("framework", "mindspore") == "mindspore"
    ]
    for record in layernorms:
        if record["kind"] == "measurement" and record.get("ulp") and record["dtype"] == "float64":
            record["ulp"]["max"] = record["worst"]["ulp_error"] = 2.0**63
            record["worst"]["got"]["decimal"], record["worst"]["exact"]["decimal"] = "3e-9", "1e-12"
    wide = [finding for finding in findings(Study.of(layernorms)) if finding.dtype == "float64"]
    assert wide
    for finding in wide:
        assert finding.absolute == 3e-9 - 1e-12
        text = point_text(finding, words_of("en"))
        assert f"no digit is right where it is off by {figure(finding.absolute)}" in text
        assert " ulp" not in text


def test_one_symptom_is_one_finding_for_each_output_with_its_cases(records):
    symptom = operator.attrgetter("subject", "op", "direction")
    one = ("mindspore", "layernorm", "backward")
    float64 = [each for each in findings(Study.of(records)) if symptom(each) == one]
    outputs = [finding.output for finding in float64]
    assert len(outputs) == len(set(outputs))
    assert {"dx", "dweight"} <= set(outputs)
    for finding in float64:
        assert (finding.cases, finding.cases_measured) == (20, 20)
        assert finding.inputs[0][3] == "0xbfeb79e1"


def test_every_plot_is_written_as_svg_and_png(written, records):
    svg = {path.stem for path in written if path.suffix == ".svg"}
    assert svg == {path.stem for path in written if path.suffix == ".png"}
    assert [name.partition("-")[0] for name in sorted(svg)] == ["error", "growth"]
    study = Study.of(records)
    wanted = {"growth-matmul-k_sweep", "growth-layernorm-mean_over_std"}
    assert wanted <= {plot.name for plot in growth_plots(study)}


def test_a_plot_that_is_no_longer_made_is_removed(tmp_path):
    synthetic.write(tmp_path, synthetic.records(("numpy", "torch"))[:3])
    (tmp_path / "plots").mkdir()
    stale, mine = tmp_path / "plots/growth-gone-x.svg", tmp_path / "plots/mine.svg"
    stale.write_text("old")
    mine.write_text("kept")
    write_report(tmp_path)
    assert not stale.exists()
    assert mine.exists()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_summary_fits_a_screen_of_80_columns_and_24_lines(records, lang):
    text = text_of(records, lang)
    lines = text.splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    assert len(lines) <= 22  # two more say where to look
    targets = Study.of(records).subjects
    assert len(targets) >= 5
    assert all(any(line.startswith(target) for line in lines) for target in targets)
    assert "layernorm float64" in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_summary_of_targets_with_long_names_fits_the_screen(lang):
    """A name of two lines takes one from the symptoms."""
    targets = [{"device": "cpu", "settings": {}}]
    for on in "01":
        settings = {"allow_tf32": on, "cudnn_allow_tf32": on, "OMP_NUM_THREADS": "2"}
        targets.append({"device": "cuda:0", "settings": settings})
    ops = ("sin", "cos", "tan", "exp", "log", "erf", "tanh", "sqrt")
    text = text_of([{**bad(op), **target} for op in ops for target in targets], lang)
    lines = text.splitlines()
    assert "cudnn_allow_tf32=1" in text
    assert any(line.startswith("torch:cpu") for line in lines)
    assert max(cell_len(line) for line in lines) <= 80
    assert len(lines) <= 22


def test_the_full_text_has_every_symptom_with_its_input(records):
    text = text_of(records, everything=True)
    lines = [line for card in cards(Study.of(records)) for line in (*card.lines, *card.edges)]
    assert len(lines) >= 6
    for line in lines:
        assert line.example.case in text.replace("\n", "").replace("   ", "")


def test_markdown_tables_have_as_many_cells_in_every_row(folder, written):
    lines = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    tables = 0
    for before, line in itertools.pairwise(lines):
        if before.startswith("|") and line.startswith("|"):
            cells = [len(re.findall(r"(?<!\\)\|", row)) for row in (before, line)]
            assert cells[0] == cells[1], (before, line)
            tables += 1
    assert tables > 5


HOSTILE = "<script>alert('x')</script> & \"quoted\" | `tick` 数值误差"


def _hostile():
    bad = synthetic.failure("sin", "forward", "y", "torch", "float16", "error", HOSTILE * 40)
    bad["output"] = None
    odd = synthetic.sine()
    odd.update(
        op=HOSTILE, framework=HOSTILE, verdict=HOSTILE, flags=[HOSTILE], dtype=HOSTILE,
        invariants_violated=[HOSTILE], output=HOSTILE,
    )  # fmt: skip
    odd["case"].update(name=HOSTILE, regime=HOSTILE)
    odd["worst"]["inputs"] = {HOSTILE: {"index": [1], "decimal": HOSTILE, "hex": HOSTILE}}
    environment = {**synthetic.environment("torch"), "cpu": HOSTILE, "settings": {HOSTILE: HOSTILE}}
    pair = synthetic.agreement(
        "linear", "forward", "y", "float32", HOSTILE + "seed", HOSTILE, "b", 0.5, 1.0, 3
    )
    check = synthetic.invariance("sin", "torch", "float32", HOSTILE, False, detail=HOSTILE)
    return [bad, odd, environment, pair, check]


def test_no_record_can_put_markup_into_the_pages(tmp_path):
    write_report(synthetic.write(tmp_path, _hostile()))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    ours = page_script()
    assert page.count(f"<script>{ours}</script>") == 1
    assert "<script" not in page.replace(f"<script>{ours}</script>", "")
    assert "数值误差" in page
    synthetic.Page(page)
    outside_commands = [line for line in markdown.splitlines() if not line.startswith("    ")]
    assert not any("<script" in line for line in outside_commands)
    assert text_of(_hostile())


@pytest.mark.parametrize(
    "some",
    [
        [],
        [synthetic.environment("torch")],
        [synthetic.failure("sin", "forward", None, "jax", "float32", "not_installed", "no jax")],
        [{"schema": 1, "kind": "a later kind", "what": "of tomorrow"}],
    ],
    ids=["nothing", "environment only", "nothing ran", "unknown kind"],
)
def test_a_report_of_nothing_says_so(some, tmp_path):
    write_report(synthetic.write(tmp_path, some))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    synthetic.Page(page)
    assert "Nothing was measured." in page
    text_of(some)


def test_a_target_without_any_answer_is_named_at_the_top(tmp_path):
    """Not one that lacks an op, nor one that failed once and answered elsewhere."""
    reason = "oneflow is not installed: run `refkernels env create oneflow`"
    records = [
        synthetic.sine(),
        synthetic.failure("cos", "forward", None, "torch", "float32", "killed", "signal 11"),
        synthetic.failure("cos", "forward", None, "numpy", "float32", "unsupported", "no cos"),
        synthetic.failure("sin", "forward", None, "oneflow", "float32", "not_installed", reason),
    ]
    write_report(synthetic.write(tmp_path, records))
    sentence = f"No answer from oneflow: {reason}."
    assert sentence in (tmp_path / "report.md").read_text(encoding="utf-8").replace("\\", "")
    assert "No answer from oneflow" in (tmp_path / "report.html").read_text(encoding="utf-8")
    top = " ".join(text_of(records).split())
    assert sentence in top
    assert top.count("No answer from") == 1


def test_a_kernel_s_missing_answers_and_changing_bits_are_told_in_the_terminal():
    """A framework may lack an op; a kernel of the reader's own was to answer."""
    kernel = "./mine.py:my_sin"
    lacking = [
        synthetic.failure("sin", "forward", None, "numpy", "float32", "unsupported", "no sin"),
        synthetic.failure("sin", "forward", None, "numpy", "float64", "unsupported", "no sin"),
    ]
    lacking[0] = {**lacking[0], "framework": kernel, "reason": f"{kernel}: it takes no axis."}
    top = " ".join(text_of(lacking).split())
    assert f"No answer from {kernel}: it takes no axis." in top
    assert "No answer from numpy" not in top

    failed = synthetic.failure("sin", "backward", None, "numpy", "float32", "error", "it raised")
    top = " ".join(text_of([*lacking, {**failed, "framework": kernel}]).split())
    assert f"No answer from {kernel}: it raised." in top  # not what it does not take either

    measured = synthetic.sine()
    broken = synthetic.invariance("sin", "torch", "float32", "run_to_run", False)
    mine = [{**record, "framework": kernel} for record in (measured, broken)]
    top = " ".join(text_of([measured, broken, *mine]).split())
    assert f"Bits depend on the run ({kernel})." in top


def test_a_measurement_with_nothing_compared_is_shown(tmp_path):
    record = synthetic.sine()
    record.update(
        ulp=None, worst=None, bound=None, plain=None, condition=None, error=None, flags=None
    )
    record["counts"] = {"elements": 3, "compared": 0}
    write_report(synthetic.write(tmp_path, [record]))
    synthetic.Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert text_of([record]).splitlines()[-2].startswith("torch: 100 %")


def test_two_versions_devices_and_settings_are_distinguished():
    record = synthetic.sine()
    study = Study.of([record, {**record, "version": "2.6.0"}, {**record, "device": "cuda:0"}])
    assert study.subjects == ["torch==2.13.0:cpu", "torch==2.13.0:cuda:0", "torch==2.6.0:cpu"]
    all_of_them = {**record, "settings": {"MKL_CBWR": "AVX2"}}
    more = {**record, "settings": {"MKL_CBWR": "AVX2", "OMP_NUM_THREADS": "1"}}
    assert Study.of([all_of_them, more]).subjects == ["torch", "torch@OMP_NUM_THREADS=1"]
    assert Study.of([record]).subjects == ["torch"]
    target = {"framework": "torch@A=1", "settings": {"A": "1"}, "device": "cuda:0"}
    assert Study.of([record, {**record, **target}]).subjects == ["torch:cpu", "torch@A=1:cuda:0"]


def test_every_subject_is_a_name_that_can_be_typed_back():
    record = synthetic.sine()
    target = {"framework": "torch==2.6.0@A=1", "version": "2.6.0", "settings": {"A": "1"}}
    records = [
        record,
        {**record, **target},
        {**record, **target, "device": "cuda:0"},
        {**record, "version": "2.6"},
    ]
    subjects = Study.of(records).subjects
    assert len(subjects) == 4
    assert all(str(parse(subject)) == subject for subject in subjects)


def test_a_subject_that_no_name_can_hold_is_described_in_words():
    record = synthetic.sine()
    study = Study.of(
        [{**record, "version": "of today"}, {**record, "version": "2.6", "device": "TPU"}]
    )
    assert study.subjects == ["torch 2.6 TPU", "torch of today cpu"]


def test_the_command_of_a_finding_names_the_target():
    record = synthetic.sine()
    target = {"framework": "torch@A=1", "settings": {"A": "1", "B": "2"}, "version": "2.6.0"}
    wrong = {**record, **target, "verdict": "exceeds_bound", "device": "cuda:0"}
    (finding,) = findings(Study.of([wrong]))
    assert "--framework torch==2.6.0@A=1 --case" in finding.command
    assert "--device cuda:0 --set B=2 --out" in finding.command


def test_a_new_op_is_plotted_when_one_number_varies_and_the_error_grows():
    records = [
        synthetic.measurement("matmul", "forward", "c", "torch", "float32", "k_sweep", {"K": k})
        for k in (2, 64, 4096)
    ]
    for record in records:
        record["op"], record["case"]["regime"] = "conv", "taps"
        record["case"]["parameters"] = {"taps": record["case"]["parameters"]["K"], "kind": "same"}
    assert [plot.name for plot in Report.of(records).growth] == ["growth-conv-taps"]


def test_the_page_of_twenty_thousand_records_is_less_than_a_megabyte(written, folder):
    assert (folder / "report.html").stat().st_size < 1_000_000


def test_a_range_to_the_end_of_float64_is_drawn():
    records = [synthetic.sine("float64", high) for high in (1e-2, 1.0, 1e38, 1.7e308)]
    assert Report.of(records).growth == []
    for record, error in zip(records, (0.5, 1.0, 1e300, 1e300), strict=True):
        record["ulp"]["max"] = error
    assert [plot.name for plot in Report.of(records).growth] == ["growth-sin-range"]
    assert [plot.name for plot in Report.of(records[1:]).growth] == ["growth-sin-range"]


def test_no_plot_draws_an_error_beyond_the_one_that_leaves_no_digit():
    records = [record for record in synthetic.records() if record.get("op") in (None, "layernorm")]
    wild = {"torch": 1e30, "paddle": 2.0**22, "numpy": 4.0}
    for record in records:
        if record["kind"] == "measurement" and record.get("ulp"):
            factor = wild.get(record["framework"], 1.0)
            record["ulp"]["max"] = factor * max(1.0, record["ulp"]["max"])
            record["ulp"]["histogram"][-1][0] = 2.0 ** math.floor(math.log2(record["ulp"]["max"]))
    study = Study.of(records)
    drawn = [
        (dtype, error)
        for plot in growth_plots(study)
        for (_, _, dtype), lines in plot.panels.items()
        for line in lines
        for error in line.ulp
    ]
    assert len(drawn) >= 100
    assert all(error is None or error <= all_digits(dtype) for dtype, error in drawn)
    reached = {dtype for dtype, error in drawn if error == all_digits(dtype)}
    assert {"float32", "float64"} <= reached
    few = [record for record in records if record.get("dtype", "float32") == "float32"]
    assert any("no digit is right" in plot.svg for plot in Report.of(few).growth)
    calm = [record for record in few if not record.get("ulp") or record["ulp"]["max"] < 100.0]
    assert not any("no digit is right" in plot.svg for plot in Report.of(calm).growth)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_a_run_left_out_is_shown_on_the_page_and_in_the_terminal(lang):
    chosen = [record for record in synthetic.records() if record.get("op", "sin") == "sin"]
    plan = {"units": 3848, "left_out": 3300}
    partial = [
        record | {"plan": plan} if record["kind"] == "environment" else record for record in chosen
    ]
    whole = [record | {"plan": {"units": 5, "left_out": 0}} for record in chosen[:1]] + chosen[1:]
    sentence = words_of(lang)["scope"].format(units="3,848", total="7,148")
    before, command, after = sentence.split("`")
    expected = f"{before}<code>{command}</code>{after}", sentence, sentence

    def mentioned(records):
        page = Report.of(records, lang, starmap=synthetic.undrawn)
        console = Console(record=True)
        console.print(terminal_table(records, lang))
        texts = page.html(), page.markdown(), console.export_text()
        pairs = zip(expected, texts, strict=True)
        return ["".join(phrase.split()) in "".join(text.split()) for phrase, text in pairs]

    assert mentioned(partial) == [True, True, True]
    assert mentioned(chosen) == mentioned(whole) == [False, False, False]
