"""Every command that a page, a sentence or the docs print runs as it is printed.

Commands of NumPy and of fakes run to their end. Those of the real frameworks, installing, sweeping
and warming are parsed, checked and stopped where they would start; what is marked runs a few of
them whole.
"""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import planted_faults
import pytest
from presence import interpreter_of
from printed_commands import (
    PLACEHOLDERS,
    furnish,
    in_markdown,
    in_page,
    in_sentences,
    in_source,
    run,
    stage,
    words_of,
)
from typer.testing import CliRunner

from refkernels.cli.app import app
from refkernels.frameworks.catalog import Framework

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "refkernels"
DOCS = [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").glob("*.md"))]
DOCS += sorted((ROOT / "notebooks").glob("*.ipynb"))
CASE = "sin/array_size[n=1,seed=0]"
LOCAL = "1.0+cpu.x86"  # a version with a local label


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where commands are run."""
    stage(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Framework]]:
    """fake_nan in a version with a local label, fake_exception, and fake_missing."""
    folder = tmp_path_factory.mktemp("fakes")
    frameworks = {fault: planted_faults.framework(fault, folder) for fault in ("nan", "exception")}
    adapter = frameworks["nan"].adapter
    source = adapter.read_text(encoding="utf-8")
    assert 'return "1.0"' in source
    adapter.write_text(source.replace('return "1.0"', f'return "{LOCAL}"'), encoding="utf-8")
    frameworks["missing"] = planted_faults.missing(folder)
    with planted_faults.registered(*frameworks.values()):
        yield frameworks


def test_the_commands_of_readme_docs_and_notebooks_are_accepted(staged: Path) -> None:
    printed = [command for page in DOCS for command in in_markdown(page.read_text("utf-8"))]
    stages: dict[str, str] = {}
    for command in dict.fromkeys(printed):
        furnish(staged)
        stages[command] = run(command)
    assert len(stages) >= 40
    assert set(stages.values()) <= {"start", "end", "mention"}
    assert stages["refkernels explain case.npz"] == "end"
    assert {words_of(command)[0] for command, came in stages.items() if came == "start"} >= {
        "measure", "sweep", "explain", "reveal", "env",
    }  # fmt: skip


def test_the_commands_in_the_sentences_of_the_sources_are_accepted(
    staged: Path, fakes: dict[str, Framework]
) -> None:
    commands = {command for path in sorted(PACKAGE.rglob("*.py")) for command in in_source(path)}
    for path in sorted((PACKAGE / "reporting" / "templates").iterdir()):
        commands |= set(in_page(path.read_text(encoding="utf-8")))
    assert len(commands) >= 12
    assert {"env", "measure", "explain", "report"} <= {words_of(command)[0] for command in commands}
    for command in sorted(commands):
        furnish(staged)
        run(command)


def test_no_sentence_of_the_sources_names_a_command_outside_of_backticks() -> None:
    names = "measure|sweep|explain|reveal|gallery|report|ops|env"
    looked_at = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            for place in re.finditer(rf"refkernels ({names})\b", line):
                looked_at += 1
                assert line[: place.start()].endswith(("`", "# ")), f"{path}: {line}"
    assert looked_at >= 15


def test_the_commands_of_a_report_run_to_their_end_and_measure_the_same_again(
    staged: Path, fakes: dict[str, Framework]
) -> None:
    frameworks = [f"--framework=fake_{name}" for name in ("nan", "exception", "missing")]
    settings = ["--set", "OMP_NUM_THREADS=1", "--set", "TWO_WORDS=two words"]
    question = ["measure", *frameworks, "--case", CASE, "--dtype", "float32", *settings]
    ran = CliRunner().invoke(app, question)  # into the default folder
    assert ran.exit_code == 1, ran.output
    pages = (
        Path("report/report.md").read_text("utf-8"),
        Path("report/report.html").read_text("utf-8"),
    )
    markdown, html = in_markdown(pages[0]), in_page(pages[1])
    measures = [command for command in markdown if words_of(command)[:1] == ["measure"]]
    assert set(measures) <= set(html)
    assert len(set(measures)) >= 2  # one for each device of the fake
    assert all(f"fake_nan=={LOCAL}" in command for command in measures)
    assert any("fake_missing" in command for command in markdown)  # the fix
    assert any("fake_missing" in command for command in html)
    for command in dict.fromkeys([*measures, *measures]):
        assert run(command) == "end"
        out = words_of(command)[words_of(command).index("--out") + 1]
        again = in_markdown(Path(out, "report.md").read_text("utf-8"))
        assert command in again  # the same finding, and the same command
    others = {*markdown, *html} - {*measures}
    for command in sorted(others):
        assert run(command) in ("start", "end")


def test_the_cures_printed_in_the_terminal_are_accepted(
    staged: Path, fakes: dict[str, Framework], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    (staged / "home" / "environments" / "paddle-3.0.0").mkdir(parents=True)  # interrupted
    (staged / "gpu-venv" / "bin" / "python").unlink()
    outputs = [CliRunner().invoke(app, ["env", "list"]).output]
    for question in (
        ["measure", "--case", "nothing", "--op", "sin"],
        ["measure", "--op", "sin", "--dtype", "float16", "--case", "sin/range[low=3e+38*"],
        ["report", "nowhere"],
        ["env", "remove", "oneflow"],
        ["explain", "sin", "--input", "x=x.npy", "--framework", "fake_missing"],
        ["reveal", "sum", "--framework", "fake_missing"],
        ["env", "remove", "paddle"],
    ):
        result = CliRunner().invoke(app, question)
        assert result.exit_code in (1, 2), result.output
        assert in_sentences(result.output), question
        outputs.append(result.output)
    commands = sorted({command for text in outputs for command in in_sentences(text)})
    assert len(commands) >= 9
    assert {"refkernels env remove torch", "refkernels env remove paddle --yes"} <= {*commands}
    for command in commands:
        furnish(staged)
        assert run(command) in ("start", "end"), command


def test_the_command_of_every_finding_that_is_kept_is_accepted(staged: Path) -> None:
    """Each is parsed and checked up to the start of its framework."""
    from refkernels.reporting.measure.findings import findings
    from refkernels.reporting.measure.study import Study
    from refkernels.reporting.reading import read_records

    kept = ROOT / "benchmarks" / "results" / "cpu-x86_64-linux" / "records.jsonl.gz"
    signs = ('"unusual"', '"exceeds_bound"', '"invariant_violated"', '"special_value_mismatch"')
    with (
        gzip.open(kept, "rt", encoding="utf-8") as lines,
        Path("some.jsonl").open("w") as chosen_lines,
    ):
        chosen_lines.writelines(line for line in lines if any(sign in line for sign in signs))
    commands = {finding.command for finding in findings(Study.of(read_records(Path("some.jsonl"))))}
    assert len(commands) >= 50
    assert any("torch==2.13.0+cpu" in command for command in commands)
    chosen = sorted(commands)[:: max(1, len(commands) // 30)]
    folders = [words_of(command)[-2] for command in commands]
    assert len(set(folders)) == len(folders)
    for command in chosen:
        assert run(command) == ("end" if "--framework numpy" in command else "start")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(framework, marks=pytest.mark.framework(framework))
        for framework in ("torch", "oneflow")
    ],
)
def test_a_framework_is_measured_again_by_the_name_that_its_records_give(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = interpreter_of(name).version  # as the framework has told it
    monkeypatch.chdir(tmp_path)
    question = ["--op", "sin", "--dtype", "float32", "--device", "cpu", "--case", CASE]
    ran = CliRunner().invoke(app, ["measure", "--framework", f"{name}=={version}", *question])
    assert ran.exit_code == 0, ran.output
    assert version in Path("report/records.jsonl").read_text(encoding="utf-8")


def test_placeholders_are_words_that_no_command_takes() -> None:
    assert all(word.isupper() or "." in word for word in PLACEHOLDERS)
