"""The pages of docs/: samples run, every page is in the site, every link leads to a file; and the
wheel, which has every file of the package, and with which README's first test passes in an
environment of its own, outside of the checkout."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
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


@pytest.mark.usefixtures("causes")
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


def test_every_page_is_in_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert f": {page.name}\n" in site, page.name


def test_every_link_leads_to_a_file() -> None:
    followed = 0
    for page in [*ROOT.glob("*.md"), *sorted(DOCS.rglob("*.md"))]:
        for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
            made_by_the_site = {"gallery/index.md", "cli.md"}
            if target not in made_by_the_site:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
                followed += 1
    assert followed > 50


def run(*command: str, folder: Path, **environment: str) -> str:
    env = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, and the packages that it needs from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    run("git", "archive", f"--output={folder / 'source.tar'}", "HEAD", folder=ROOT)
    shutil.unpack_archive(folder / "source.tar", folder / "source")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", ".", "./source", folder=folder)
    (wheel,) = map(str, folder.glob("*.whl"))
    run(sys.executable, "-m", "venv", "--without-pip", "fresh", folder=folder)
    run(*pip, "--python", "fresh", "install", "--quiet", "--no-deps", wheel, folder=folder)
    (site,) = (folder / "fresh").glob("lib/python*/site-packages")
    (site / "needs.pth").write_text(sysconfig.get_path("purelib"))  # whose own .pth are not read
    return site


def test_the_wheel_has_every_file_of_the_package(installed: Path) -> None:
    tracked = run("git", "ls-tree", "-r", "--name-only", "HEAD", "refkernels", folder=ROOT)
    files = (file for file in installed.rglob("refkernels/**/*.*") if file.suffix != ".pyc")
    assert {str(file.relative_to(installed)) for file in files} == {*tracked.split()}


def test_the_first_test_of_readme_passes_with_it(installed: Path, tmp_path: Path) -> None:
    (sample,) = samples(ROOT / "README.md")
    kernel = next(one for one in samples(DOCS / "first-steps.md") if "def my_layernorm" in one)
    place = f"assert refkernels.__file__.startswith({str(installed)!r})"
    parts = (kernel.partition("def test_")[0], sample, "import refkernels", place)
    (tmp_path / "test_my_layernorm.py").write_text("\n".join(parts))
    command = (str(installed.parents[2] / "bin" / "python"), "-m", "pytest", "-q")
    assert "1 passed" in (text := run(*command, folder=tmp_path, PYTHONPATH=""))
    assert re.search(r"rounding alone may cost \d\d% of the result \(layernorm y, test_my_la", text)
