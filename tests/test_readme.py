"""The tables and figures of README.md and docs/ are those of the results that are kept."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from refkernels.records import codec
from refkernels.reporting.reading import read_records

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))
write_readme = importlib.import_module("write_readme")


@pytest.mark.parametrize("name", write_readme.PAGES)
def test_every_table_and_figure_is_what_the_kept_results_give(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert write_readme.written(name, page) == page


def test_a_cheat_that_the_judge_passes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = json.loads((write_readme.RESULTS / "judging.json").read_text(encoding="utf-8"))
    assert "`judge` passes none" in write_readme.judged()
    kept["verdicts"]["cheats/softmax.py:zeros_softmax"] = ["right", "unfair"]
    (tmp_path / "judging.json").write_text(json.dumps(kept), encoding="utf-8")
    monkeypatch.setattr(write_readme, "RESULTS", tmp_path)
    assert "of 89 cheats" in write_readme.judged()
    assert "`judge` passes 1," in write_readme.judged()


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the table 'accuracy'"):
        write_readme.written("README.md", "# refkernels\n")


FIGURES = [(page, name) for page, named in write_readme.FIGURES.items() for name in named]


@pytest.mark.parametrize(("name", "number"), FIGURES)
def test_a_figure_typed_by_hand_is_put_right(name: str, number: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    typed = re.sub(f"(?<=<!--{number}-->)[^<]*", "1.25e-4", page)
    assert typed != page
    assert write_readme.written(name, typed) == page


@pytest.mark.parametrize("start", ["<!--gradient ratio-->", ""])
def test_a_figure_without_a_place_or_at_the_start_of_a_line_is_refused(start: str) -> None:
    page = (ROOT / "docs" / "threads.md").read_text(encoding="utf-8")
    moved = page.replace(" <!--gradient ratio-->", f"\n{start}")
    with pytest.raises(ValueError, match="no place for the figure 'gradient ratio'"):
        write_readme.written("docs/threads.md", moved)


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize(
    ("part", "whole", "told"),
    [(5, 5, "all"), (99_995, 100_000, ">99.99 %"), (9_999, 10_000, ">99.99 %"),
     (99_989, 100_000, "99.98 %"), (9_999, 100_000, "9 %"), (99, 100_000, "<0.1 %"),
     (0, 3, "0 %")],
)  # fmt: skip
def test_a_share_is_never_rounded_up(part: int, whole: int, told: str) -> None:
    assert write_readme._right(part, whole) == told


def test_the_records_of_an_emulated_machine_say_so() -> None:
    records = read_records(write_readme.EMULATED / "records.jsonl")
    environments = {r["id"]: r for r in records if r["kind"] == "environment"}
    measured = [r for r in records if r["kind"] == "measurement"]
    emulated = [r for r in measured if r["settings"].get("machine") == "aarch64"]
    assert len(emulated) == len(measured) / 2
    for record in emulated:
        environment = environments[record["environment"]]
        assert environment["emulator"].startswith("qemu-aarch64")
        assert environment["cpu"].startswith("emulated by")


def test_a_pass_stands_below_the_table_of_two_machines_only_where_all_bits_are_the_same(
    tmp_path: Path,
) -> None:
    records = [
        record
        for record in read_records(write_readme.EMULATED / "records.jsonl")
        if record["kind"] == "environment"
        or (record.get("op"), record.get("direction")) == ("sigmoid", "forward")
    ]
    page = write_readme.emulated("torch", written(tmp_path / "same", records))
    assert "The same in all bits: sigmoid forward float32 and sigmoid forward float64." in page
    pair = next(r for r in records if r["kind"] == "agreement" and r["dtype"] == "float32")
    pair["equal_bits"] -= 1
    page = write_readme.emulated("torch", written(tmp_path / "apart", records))
    assert "| sigmoid forward float32 | " in page
    assert "The same in all bits: sigmoid forward float64." in page


def written(folder: Path, records: list[dict[str, object]]) -> Path:
    folder.mkdir()
    lines = "".join(f"{codec.dumps(record)}\n" for record in records)
    (folder / "records.jsonl").write_text(lines, encoding="utf-8")
    return folder
