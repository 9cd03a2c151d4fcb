"""The pages of docs/: samples run, every page is in the site, and every link leads to a file."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
SAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MY_KERNELS = """
import numpy as np


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True)) if x.size else x
    return e / e.sum(axis=-1, keepdims=True)
"""
NEEDS_A_FRAMEWORK = {"align.md", "capture.md", "bert.md"}  # their own tests run what these show


def samples(page: Path) -> list[str]:
    return SAMPLE.findall(page.read_text(encoding="utf-8"))


RUN = [page for page in PAGES if samples(page) and page.name not in NEEDS_A_FRAMEWORK]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_samples_of_a_page_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_kernels.py").write_text(MY_KERNELS)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for sample in samples(page):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(sample, page.name, "exec"), names)
    for function in [value for name, value in names.items() if name.startswith("test_")]:
        for mark in getattr(function, "pytestmark", []):
            argument, values = mark.args
            for value in values:
                function(**{argument: value})  # type: ignore[operator]


def test_samples_were_run() -> None:
    assert {"first-steps", "test-your-kernel", "write-an-oracle"} <= {page.stem for page in RUN}


def test_the_readme_has_the_first_test_that_a_user_types() -> None:
    (sample,) = samples(ROOT / "README.md")
    names: dict[str, object] = {}
    kernel = next(one for one in samples(DOCS / "first-steps.md") if "def my_layernorm" in one)
    exec(kernel.partition("def test_")[0], names)
    exec(sample + "\n\ntest_my_layernorm()\n", names)


def test_every_page_is_in_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert PAGES
    for page in PAGES:
        assert f": {page.name}\n" in site, page.name


def test_every_link_leads_to_a_file() -> None:
    followed = 0
    for page in [*ROOT.glob("[RC][EO]*.md"), *sorted(DOCS.rglob("*.md"))]:
        for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
            made_by_the_site = {"gallery/index.md", "cli.md"}
            if target not in made_by_the_site:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
                followed += 1
    assert followed > 50
