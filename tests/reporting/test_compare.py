"""Two runs compared: the kind of a change follows from the two records alone."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from test_symptoms import bad

from refkernels.reporting.compare.changes import compare
from refkernels.reporting.compare.views import (
    comparison_markdown,
    comparison_table,
    write_comparison,
)
from refkernels.reporting.measure.study import Study


def fine(mean=1.0, digest="a", **more):
    return {**bad(verdict="rounding", beyond=0, mean=mean, **more), "digest": digest}


def wrong(mean=100.0, digest="a", **more):
    return {**bad(mean=mean, **more), "digest": digest}


def failed(**more):
    return {**fine(**more), "status": "error", "reason": "boom", "output": None, "verdict": None}


def changed(old, new):
    comparison = compare(Study.of(old), Study.of(new))
    assert (
        sum(comparison.counts.values())
        == sum(len(change.pairs) for change in comparison.changes) + (comparison.counts["same"])
    )
    return comparison


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (fine(), fine(), None),
        (fine(), fine(digest="b"), "bits"),
        (fine(), fine(2.0, "b"), "bits"),
        (fine(), fine(2.1, "b"), "worse"),
        (fine(2.1), fine(1.0, "b"), "better"),
        (fine(0.001), fine(0.24, "b"), "bits"),  # both below what correct rounding errs
        (fine(), wrong(digest="b"), "new"),
        (wrong(), fine(digest="b"), "fixed"),
        (wrong(), fine(), "judged"),
        (wrong(), wrong(verdict="special_value_mismatch", digest="b"), "worse"),
        (fine(), {**fine(digest="b"), "flags": ["unusual"]}, "new"),
        (fine(), failed(), "broken"),
        (failed(), fine(), "runs"),
        (failed(), failed(), None),
        (None, fine(), "added"),
        (fine(), None, "gone"),
    ],
)
def test_what_a_change_is_called(before, now, kind):
    old, new = ([record] if record is not None else [] for record in (before, now))
    comparison = changed(old, new)
    assert [change.kind for change in comparison.changes] == ([kind] if kind else [])
    assert comparison.setbacks == (kind in ("new", "broken", "worse"))
    assert comparison.both == (kind not in ("added", "gone", "broken", "runs"))


def test_cases_of_one_output_are_one_change_with_the_most_ordinary_shown():
    old = [fine(case="#1"), fine(case="#2")]
    new = [wrong(digest="b", case="#1", x="inf"), wrong(digest="b", case="#2", mean=2.0)]
    (change,) = changed(old, new).changes
    assert len(change.cases) == 2
    assert change.shown.case.endswith("#2")


def test_another_version_of_a_target_is_the_same_target():
    comparison = changed([fine()], [{**fine(), "version": "3.0"}])
    assert comparison.changes == []
    assert comparison.versions == [("torch", "2.13.0", "3.0")]


def runs():
    ops = [f"op{number}" for number in range(40)]
    old = [fine(op=op) for op in ops] + [wrong(op="sin")]
    return old, [wrong(op=op, digest="b") for op in ops] + [fine(op="sin", digest="b")]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_fits_80_columns_and_says_how_much_more_there_is(lang):
    comparison = changed(*runs())
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(comparison_table(comparison, "OLD", "NEW", lang, 5))
    lines = console.export_text().splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert "36" in lines[-1]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_verdict_and_no_number_of_the_table_is_broken_in_two(lang):
    comparison = changed([wrong(mean=3.8e13)], [wrong(mean=1e30, digest="b")])
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(comparison_table(comparison, "OLD", "NEW", lang))
    text = console.export_text()
    for whole in {
        "en": ("✗ beyond bound", "3.8e13 ulp"),
        "zh": ("✗ 超出误差界", "3.8e13 ulp", "没有一位数字正确"),
    }[lang]:
        assert whole in text


@pytest.mark.parametrize(
    ("lang", "head", "summary", "status"),
    [
        ("en", "no longer runs: 1 output\n", "1 no longer runs.", "the call failed"),
        ("zh", "不再运行：1 个输出\n", "不再运行 1 个。", "调用失败"),
    ],
)
def test_one_output_that_fails_is_one_output_with_its_status_in_words(lang, head, summary, status):
    text = comparison_markdown(changed([fine()], [failed()]), "OLD", "NEW", lang)
    assert head in text
    assert summary in text
    assert f"| {status} |" in text


def test_the_page_links_to_the_new_run_and_shows_every_change(tmp_path):
    comparison = changed(*runs())
    written = write_comparison(tmp_path, comparison, "OLD", "NEW", report="../NEW/report.html")
    page, markdown = (path.read_text("utf-8") for path in written)
    for change in comparison.changes:
        assert f"{change.shown.op} forward float64" in page
        assert change.shown.op in markdown
        if change.kind == "new":
            assert f'href="../NEW/report.html#{change.finding}">' in page
    assert page.count('href="../NEW') == 40
    assert "<script" not in page


def test_names_put_no_markup_into_the_page(tmp_path):
    hostile = "<script>|`x`"
    comparison = changed(
        [fine(op=hostile, case=hostile)], [wrong(op=hostile, case=hostile, digest="b")]
    )
    page, markdown = (
        p.read_text("utf-8") for p in write_comparison(tmp_path, comparison, hostile, "b")
    )
    assert "<script" not in page
    assert len(comparison.changes) == 1
    rows = [line for line in markdown.splitlines() if line.startswith("| torch")]
    assert len(rows) == 1
    assert comparison_markdown(comparison, hostile, "b") == markdown
