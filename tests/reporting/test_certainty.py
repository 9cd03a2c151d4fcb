"""The report's section on the oracle's own certainty."""

from synthetic import records, undrawn

from refkernels.reporting.measure.certainty import certainties
from refkernels.reporting.measure.pages import Report
from refkernels.reporting.measure.study import Study


def test_an_element_counts_once_however_many_frameworks_were_measured() -> None:
    of_one = certainties(Study.of(records(("torch",))))
    all_of_them = certainties(Study.of(records()))
    assert [row.title for row in of_one] == [
        row.title for row in all_of_them if row.title in titles(of_one)
    ]
    by_title = {row.title: row for row in all_of_them}
    assert len(of_one) > 10
    for row in of_one:
        assert by_title[row.title].tiers == row.tiers
        assert row.elements == sum(row.tiers.values()) > 0
        assert row.tiers["exact"] == 3 * row.elements // 4096


def titles(rows: list) -> set[str]:
    return {row.title for row in rows}


def test_the_widest_uncertainty_is_the_largest_of_all_cases_and_frameworks() -> None:
    measurements = [r for r in records() if r["kind"] == "measurement" and r["op"] == "sin"]
    measurements[5]["ulp"]["max_uncertainty"] = 0.25
    widest = {row.title: row.width for row in certainties(Study.of(measurements))}
    changed = f"sin {measurements[5]['direction']} {measurements[5]['dtype']}"
    assert widest.pop(changed) == 0.25
    assert set(widest.values()) == {1e-9}


def few() -> list[dict]:
    """The records of two ops from two frameworks."""
    return [r for r in records(("torch", "paddle")) if r.get("op", "sin") in ("sin", "layernorm")]


def test_the_page_lists_the_tiers() -> None:
    assert "How certain is the truth?" in Report.of(few(), starmap=undrawn).html()


def test_records_without_tiers_make_no_table() -> None:
    without_tiers = [{k: v for k, v in r.items() if k != "oracle"} for r in few()]
    assert certainties(Study.of(without_tiers)) == []
    assert "How certain is the truth?" not in Report.of(without_tiers, starmap=undrawn).html()
