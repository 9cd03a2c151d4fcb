"""`refkernels compare`: statuses for CI, pages on request."""

import json
from pathlib import Path

import pytest
import synthetic
from command_helpers import said


def written(folder: Path, **changes: object) -> Path:
    record = synthetic.sine()
    folder.mkdir()
    line = json.dumps({**record, **changes}) + "\n"
    (folder / "records.jsonl").write_text(line, encoding="utf-8")
    return folder


def invoked(*words: object) -> tuple[int, str]:
    ran = said("compare", *map(str, words))
    assert "Traceback" not in ran.output
    return ran.exit_code, ran.output


@pytest.mark.parametrize(
    ("changes", "statuses"),  # of worse, bits, never
    [
        ({}, (0, 0, 0)),
        ({"digest": "other"}, (0, 1, 0)),
        ({"digest": "other", "verdict": "exceeds_bound"}, (1, 1, 0)),
        ({"status": "killed"}, (1, 1, 0)),
    ],
)
def test_the_status_says_whether_something_is_worse(
    tmp_path: Path, changes: dict[str, object], statuses: tuple[int, ...]
) -> None:
    old, new = written(tmp_path / "old"), written(tmp_path / "new", **changes)
    for level, status in zip(("worse", "bits", "never"), statuses, strict=True):
        assert invoked(old, new, "--fail-on", level)[0] == status, level


def test_a_page_and_markdown_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    old, new = written(tmp_path / "old"), written(tmp_path / "new", digest="other")
    status, text = invoked(old, new, "--out", tmp_path / "both", "--lang", "zh")
    assert status == 0
    assert "compare.html" in text
    page = (tmp_path / "both" / "compare.html").read_text("utf-8")
    assert "位有变化" in page
    assert (tmp_path / "both" / "compare.md").exists()


def test_what_cannot_be_compared_is_one_sentence_and_status_2(tmp_path: Path) -> None:
    old = written(tmp_path / "old")
    for question in (
        (old, tmp_path / "nowhere"),
        (old, old, "--fail-on", "better"),
        (old, old, "--lang", "fr"),
    ):
        status, text = invoked(*question)
        assert status == 2, text
        assert len(text.strip().splitlines()) <= 3


def test_a_file_in_place_of_a_folder_is_reported_with_the_cure(tmp_path: Path) -> None:
    old = written(tmp_path / "old")
    status, text = invoked(old, old / "records.jsonl")
    assert status == 2
    assert "is a file: give the folder" in " ".join(text.split())
