"""The tables and figures of README.md and docs/ are those of the results that are kept."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("write_readme", ROOT / "tools" / "write_readme.py")
assert SPEC is not None
assert SPEC.loader is not None
write_readme = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(write_readme)


@pytest.mark.parametrize("name", write_readme.PAGES)
def test_every_table_and_figure_is_what_the_kept_results_give(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert write_readme.written(name, page) == page


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
def test_a_share_is_never_rounded_to_a_better_fate(part: int, whole: int, told: str) -> None:
    assert write_readme._right(part, whole) == told
