"""Pages are made whatever becomes of the processes that help."""

from pathlib import Path

import pytest
from command_helpers import said

from refkernels.cli.shared import pages
from refkernels.records.files import compress
from refkernels.runs.sweeps import pool

ARGUMENTS = [(number,) for number in range(40)]


@pytest.mark.parametrize("error", [OSError("AF_UNIX path too long"), EOFError()])
def test_four_processes_at_most_are_asked_for_and_where_none_starts_the_current_one_works(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = []

    def refuse(number: int) -> None:
        requested.append(number)
        raise error

    monkeypatch.setattr(pool, "usable_cores", lambda: 64)
    monkeypatch.setattr(pool, "Processes", refuse)
    assert list(pages.starmap(abs, ARGUMENTS)) == list(range(40))
    assert requested == [4]


def test_a_page_links_to_the_records_that_are_beside_it(tmp_path: Path) -> None:
    question = ["measure", "--framework", "numpy", "--case", "sin/specials[seed=0]"]
    ran = said(*question, "--dtype", "float32", "--out", str(tmp_path))
    assert ran.exit_code == 0, ran.output
    path = tmp_path / "records.jsonl"
    for name in ("records.jsonl", "records.jsonl.gz"):
        assert said("report", str(tmp_path)).exit_code == 0
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert f'href="{name}" download' in page
        assert (tmp_path / name).exists()
        if path.exists():
            compress(path)
