"""The page as a reader meets it: cards that lead to findings, ids that stay, nothing that waits for
a mouse or for JavaScript; in both languages."""

import csv
import html
import io
import json
import re
import string
from pathlib import Path

import pytest
import synthetic
from test_symptoms import bad, found_on, in_float32

from refkernels import reporting
from refkernels.reporting.measure import pages, writing
from refkernels.reporting.measure.comparisons import agreements
from refkernels.reporting.measure.findings import findings
from refkernels.reporting.measure.ids import finding_id, target_id
from refkernels.reporting.measure.inputs import Input, distinguishing_digits
from refkernels.reporting.measure.matrix import matrix
from refkernels.reporting.measure.pages import Report
from refkernels.reporting.measure.study import Study
from refkernels.reporting.measure.symptoms import cards
from refkernels.reporting.words import report as words
from refkernels.reporting.words import vocabulary

PACKAGE = Path(reporting.__file__).parent
SCRIPT = "import torch\n\n\nprint(1 < 2)\n"


@pytest.fixture(scope="module")
def records():
    record, edge = bad(), bad("sin", x="inf", verdict="special_value_mismatch")
    edge["counts"]["special_value_mismatches"] = 7
    explained = found_on(record, "eps_rounded", details={"eps": 1e-5}, script=SCRIPT)
    return [*synthetic.records(), record, edge, explained]


def undrawn(records, lang="en"):
    return Report.of(records, lang, starmap=synthetic.undrawn)


@pytest.fixture(scope="module", params=["en", "zh"])
def page(records, request):
    return synthetic.Page(undrawn(records, request.param).html())


def test_every_finding_has_an_id_and_is_linked(page, records):
    listed = findings(Study.of(records))
    assert len(listed) > 20
    assert {finding.id for finding in listed} <= set(page.ids)
    assert len({finding.id for finding in listed}) == len(listed)
    inside = [link[1:] for link in page.links if link.startswith("#")]
    assert set(inside) <= set(page.ids)
    in_full = {
        finding.id for finding in listed if finding.input is not Input.EDGE
    }  # a row's link is script's
    assert in_full
    assert in_full <= set(inside)


def test_findings_of_a_large_run_are_rows_but_for_the_first_and_the_explained(monkeypatch, records):
    monkeypatch.setattr(pages, "_MOST_IN_FULL", 10)
    report = undrawn(records)
    page = report.html()
    ids = {finding.id for finding in findings(report.study)}
    rows = set(re.findall(r'<tr id="([\w.-]+)"', page))
    full = set(re.findall(r'<div class=body id="([\w.-]+)"', page))
    assert rows | full == ids
    assert not rows & full
    assert {line.first[0].finding for line in cards(report.study) if line.first} <= full
    assert "print(1 &lt; 2)" in page
    assert len(rows) > 10


def test_a_row_says_how_to_measure_it_again_and_names_its_columns_on_a_phone(monkeypatch, records):
    monkeypatch.setattr(pages, "_MOST_IN_FULL", 10)
    report = undrawn(records)
    page = report.html()
    listed = [finding for finding in findings(report.study) if finding.id not in report._in_full]
    first = next(finding for finding in listed if finding.input is not Input.EDGE)
    assert f"<code>{first.command}</code>" in html.unescape(page)
    heads = re.search(r'<div class="scroll"><table><thead><tr>(.*?)</thead>', page)[1]
    heads = re.findall(r"<th>([^<]*)", heads)
    labels = re.findall(r'\.rows td:nth-child\((\d+)\)::before\{content:"([^"]*): "\}', page)
    assert [int(place) for place, _ in labels] == list(range(4, len(heads) + 1))
    assert [label for _, label in labels] == heads[3:]


def test_the_cause_of_an_answer_is_seen_in_another_output_of_its_call():
    mean = in_float32("layernorm") | {"output": "mean"}
    answer = bad("layernorm", dtype="float64", output="y")
    answer["worst"]["got"] = {"decimal": "2.4009850053259862", "hex": "0x1.3353797f4b3e5p+1"}
    alone = in_float32("sin", "0x1.8ab7e0f19cab6p+6")
    report = undrawn([mean, answer, alone])
    page = report.html()
    found = [finding for finding in findings(report.study) if finding.op == "layernorm"]
    causes = {f.output: re.search(rf'id="?{f.id}.*?</details>', page, re.DOTALL)[0] for f in found}
    assert "<dd>its mean: float32 numbers" in causes["y"]
    assert "<dd>a float32 number" in causes["mean"]
    assert page.count("float32 number") == 3  # these and the card's


def test_markdown_sets_the_marks_of_its_language(records):
    english, chinese = (undrawn(records, lang).markdown() for lang in ("en", "zh"))
    kind = {lang: words.words_of(lang)["kind:report"] for lang in ("en", "zh")}
    assert f"** ({kind['en']}): " in english
    assert f"**（{kind['zh']}）：" in chinese
    assert " (" not in "".join(re.findall(r"\*\*[^*\n]*：", chinese))
    assert re.search(r"\. x = 1\.5 gives", english)
    assert re.search(r"。x = 1\.5 得", chinese)


def test_the_page_needs_no_javascript(page, records):
    """All that is hidden is the form that filters; every case, input and cause is in the text."""
    assert page.hidden == ["filter"]
    text = " ".join(page.text)
    for finding in findings(Study.of(records)):
        assert re.sub(r"^\w+/", "", finding.example.case) in text
        shown = finding.got[0], distinguishing_digits(finding.got[0], finding.exact[0])[0]
        assert any(number in text for number in shown)
    assert "print(1 < 2)" in text
    assert "1e-05" in text


def test_ids_do_not_depend_on_figures_order_or_what_else_was_measured(records):
    study = Study.of(records)
    again = []
    for record in reversed(records):
        if record["kind"] == "measurement" and record["status"] == "ok":
            record = {
                **record,
                "ulp": {**record["ulp"], "max": 3.0 * record["ulp"]["max"]},
                "version": "9.9",
            }
            again.append({**record, "digest": "other"})
    ids = {finding.id for finding in findings(study)}
    assert ids == {finding.id for finding in findings(Study.of(again))}
    alone = [record for record in again if record["op"] == "layernorm"]
    assert {finding.id for finding in findings(Study.of(alone))} < ids


def test_ids_of_hostile_names_are_plain_and_differ():
    ids = set()
    for name in ("a b", "a_b", "a-b", "<b>", "数", "数值", ""):
        (measurement,) = Study.of([{**bad(), "op": name or " "}]).measurements
        ids.add(finding_id(measurement))
        assert re.fullmatch(r"[\w.-]+", finding_id(measurement), re.ASCII)
    assert len(ids) == 7


def test_an_id_has_a_short_name_for_a_long_target_and_one_target_for_each_name():
    targets = ("torch", "torch:cpu", "torch:cuda:0", "torch@tf32=0:cuda:0", "torch@tf32=1:cuda:0")
    names = [target_id(target) for target in targets]
    assert names[0] == "torch"
    assert len(set(names)) == len(targets)
    assert max(map(len, names)) <= 27
    assert all(re.fullmatch(r"[\w.]+", name, re.ASCII) for name in names)


def test_a_mark_is_the_worst_of_ordinary_inputs_and_shows_what_edges_add():
    fine = bad("sin", verdict="rounding", beyond=0)
    edge = bad("sin", x="nan", verdict="special_value_mismatch", case="#2")
    inside = bad("cos", verdict="rounding", flags=["unusual"], dtype="float32")
    study = Study.of([fine, edge, inside, bad("tan"), bad("tan", x="nan", case="#2")])
    lines = {line.op: line for line in matrix(study, findings(study))}
    (sin,), (cos,), (tan,) = (lines[op].cells["torch"] for op in ("sin", "cos", "tan"))
    assert (sin.verdict.name, sin.edge.name) == ("rounding", "special_value_mismatch")
    assert (cos.verdict.name, cos.edge, cos.label) == ("unusual", None, "32")
    assert (tan.verdict.name, tan.edge) == ("exceeds_bound", None)
    ids = {finding.id: finding for finding in findings(study)}
    assert ids[tan.finding].input == Input.ORDINARY
    assert list(lines) == ["tan", "cos", "sin"]


def test_figures_to_download_are_those_of_the_records(records):
    rows = list(csv.DictReader(io.StringIO(writing.table_of(Study.of(records)))))
    taken = [record for record in records if record["kind"] == "measurement"]
    assert len(rows) == len(taken) > 300
    by_place = {
        (record["op"], record["direction"], record["dtype"], record["framework"],
         record["case"]["name"], record["output"] or ""): record
        for record in taken
    }  # fmt: skip
    for row in rows:
        place = (row["op"], row["direction"], row["dtype"], row["framework"], row["case"],
                 row["output"])  # fmt: skip
        record = by_place[place]
        assert row["status"] == record["status"]
        if record["status"] == "ok":
            assert float(row["max_ulp"]) == record["ulp"]["max"]
            assert float(row["error_over_bound"]) == record["bound"]["max_ratio"]
            assert row["verdict"] == record["verdict"]


@pytest.mark.parametrize("name", ["report.html.j2", "report.md.j2", "compare.html.j2"])
def test_no_word_of_a_template_is_a_method_of_dict(name):
    """`w.copy` would be one."""
    named = set(re.findall(r"\bw\.(\w+)", (PACKAGE / "templates" / name).read_text("utf-8")))
    assert named <= words.words_of("en").keys() - set(dir(dict))


def test_every_word_is_used_and_has_the_same_figures_in_both_languages():
    sources = "".join(
        path.read_text("utf-8")
        for folder in (PACKAGE, PACKAGE.parent / "cli")
        for path in [*folder.rglob("*.py"), *folder.rglob("*.j2")]
        if path.name != "report.py" or path.parent.name != "words"
    )
    vocabularies = [words.words_of(lang) for lang in ("en", "zh")]
    assert vocabularies[0].keys() == vocabularies[1].keys()
    for key in vocabularies[0]:
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(phrases[key]) if name}
            for phrases in vocabularies
        ]
        assert fields[0] == fields[1], key
        stem, _, ending = key.rpartition(":")
        names = {key, f"{stem}:", ending if stem == "short" else key, key.removesuffix("s")}
        assert any(f'"{name}' in sources or f"w.{name}" in sources or f"'{name}" in sources
                   for name in names), key  # fmt: skip
    for verdict in vocabulary.LEVEL_WORDS:
        assert vocabulary.short_of(verdict, "zh") != verdict.short
    for meanings in vocabulary.MEANINGS.values():
        assert all(meanings["zh"][name] != meaning for name, meaning in meanings["en"].items())


def test_a_long_script_lies_beside_the_page_and_goes_with_its_finding(tmp_path):
    record, long = bad(), SCRIPT * 300
    explained = found_on(record, "eps_rounded", details={"eps": 1e-5}, script=long)
    folder = synthetic.write(tmp_path, [record, explained])
    reporting.write_report(folder, starmap=synthetic.undrawn)
    (script,) = (folder / "scripts").glob("*.py")
    assert script.read_text("utf-8") == long
    every = (folder / "scripts" / "scripts.js").read_text("utf-8")
    assert json.loads(every[every.index("{") : every.rindex(";")]) == {script.stem: long}
    (link,) = (
        x for x in synthetic.Page((folder / "report.html").read_text("utf-8")).links if ".py" in x
    )
    assert folder / link == script
    synthetic.write(tmp_path, [{**record, "verdict": "rounding"}])
    reporting.write_report(folder, starmap=synthetic.undrawn)
    assert list((folder / "scripts").iterdir()) == []


def test_what_did_not_run_is_said_once_for_all_ops():
    places = [f"{op} {way} bfloat16" for op in "abcdefghij" for way in ("backward", "forward")]
    gathered = pages._gathered([*places, "z forward float16 (invariance)"])
    assert gathered == [
        ("backward, forward bfloat16: a, b, c, d, e, f, g, h", ("+2", "i, j")),
        ("forward float16 (invariance): z", None),
    ]


def test_targets_of_two_devices_are_one_matrix():
    def record(a, b, device):
        about = synthetic.agreement("sin", "forward", "y", "float32", "sin/a", a, b, 0.5, 1.0, 1)
        return {**about, "device": device}

    mixed = [record("torch", "torch:cuda:0", "mixed"), record("torch:cuda:0", "p", "cuda:0")]
    (matrix_of_both,) = agreements(Study.of(mixed))
    assert len(matrix_of_both.pairs) == 2
    assert matrix_of_both.title == "sin forward float32"
    (alone,) = agreements(Study.of(mixed[1:]))
    assert alone.title == "sin forward float32 on cuda:0"


def test_an_agreement_names_its_targets_as_the_other_tables_do():
    """A run calls the processor's target `torch`; beside a GPU's it is `torch:cpu` on the page. A
    formula is left out, also where it is measured under two settings."""
    on = [("cpu", {}, None), ("cuda:0", {"t": "0"}, None)]
    on += [("cuda:0", {"t": str(t)}, "PyTorch ops") for t in (0, 1)]
    measured = [{**bad(), "device": device, "settings": t, "formula": f} for device, t, f in on]
    compared = [("torch", "torch:cuda:0"), ("PyTorch ops:cuda:0", "PyTorch ops:cuda:0")]
    records = [
        synthetic.agreement("sin", "forward", "y", "float32", "sin/a", a, b, 0.5, 1.0, 1)
        for a, b in compared
    ]
    study = Study.of([*measured, *records])
    (matrix_of_kernels,) = agreements(study.without_formulas)
    assert set(matrix_of_kernels.names) < set(study.subjects)
    assert "torch:cpu" in matrix_of_kernels.names


def test_a_language_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no language 'fr'"):
        Report.of([], "fr")


def test_an_explained_row_names_its_cause_and_has_a_script(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "_MOST_IN_FULL", 0)
    monkeypatch.setattr(pages, "_MOST_EXPLAINED", 0)
    ops = ("sin", "cos", "tan", "exp", "log", "erf", "tanh")
    records = [bad(op, beyond=4096 - place) for place, op in enumerate(ops)]
    causes = [found_on(each, f"cause_{each['op']}", script=SCRIPT) for each in records]
    folder = synthetic.write(tmp_path, [*records, *causes])
    reporting.write_report(folder, starmap=synthetic.undrawn)
    page = (folder / "report.html").read_text("utf-8")
    rows = re.findall(r"<tr id=\S+[^>]* data-p>.*?(?=<tr|</tbody)", page, re.S)
    (card,) = cards(Study.of([*records, *causes]))
    assert {re.search(r"cause_\w+ \(proven\)", row)[0] for row in rows} == {
        f"cause_{symptom.ops[0]} (proven)" for symptom in card.further
    }
