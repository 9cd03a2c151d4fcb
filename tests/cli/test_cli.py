"""The command line: its output and its status. 0: fine; 1: a framework failed; 2: a question that
cannot be answered."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import planted_faults
import pytest
import typer
from command_helpers import refused
from command_helpers import said as refkernels_says

import refkernels
from refkernels import cli, registry
from refkernels.cli.app import app
from refkernels.frameworks import catalog

SMALL = ["--case", "tan/array_size[n=1,seed=0]", "--dtype", "float32"]


fakes = planted_faults.fixture("correct", "one_ulp_off", "exception", "missing")


def test_the_version_is_printed() -> None:
    assert refkernels_says("--version").stdout == f"{refkernels.__version__}\n"


def test_the_list_has_every_case_with_its_dtypes() -> None:
    listed = refkernels_says("measure", "--list")
    assert listed.exit_code == 0
    *lines, last = listed.stdout.splitlines()
    assert "matmul/k_sweep[K=385,seed=0]  (float16, bfloat16, float32, float64)" in lines
    assert last.startswith(f"{len(lines)} cases, ")
    narrowed = refkernels_says("measure", "--list", "--op", "sin", "--dtype", "float64")
    assert all(re.match(r"sin/.*\(float64\)$", line) for line in narrowed.stdout.splitlines()[:-1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--op", "sine"], r"no op 'sine': did you mean 'sin'\? It is one of \d+; `"),
        (["--dtype", "float8"], r"no dtype 'float8': choose one of float16, bfloat16"),
        (["--case", "sin/nothing[n=1]"], r"No case is called 'sin/nothing\[n=1\]'.*--list"),
        (["--op", "sin", "--case", "cos/specials*"], r"No case of sin is called 'cos/specials\*'"),
        (["--case", "sin/range[low=3e+38*", "--dtype", "float16"], r"None .* inputs in float16: "),
        (["--case", "sin/spcials[seed=0]"], r"did you mean 'sin/specials\[seed=0\]'\?"),
        (["--dtype", "float23"], r"did you mean 'float32'\? Choose one of"),
        (["--case", ""], r"No case is called ''"),
        (["--framework", "torhc"], r"'torhc': did you mean 'torch'\? Choose one of numpy"),
        (["--framework", "torch==x.y"], r"'torch==x.y' names no version"),
        (["--set", "FOO"], r"--set 'FOO' is not NAME=VALUE"),
        (["--set", "=1"], r"--set '=1' is not NAME=VALUE"),
        (["--set", "colour=red"], r"no adapter has a flag named 'colour': the flags are .*thread"),
    ],
)
def test_a_question_without_an_answer_is_one_sentence(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    out = tmp_path / "out"
    small = [] if {"--op", "--dtype", "--case"} & {*arguments} else SMALL
    sentence = refused(refkernels_says("measure", *small, *arguments, "--out", out))
    assert re.search(said, sentence)
    assert not out.exists()


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    numpy = ["--framework", "numpy"]
    sentence = refused(refkernels_says("measure", *SMALL, *numpy, "--out", tmp_path / "file"))
    assert "file cannot be created as a folder (File exists): choose another --out." in sentence
    sentence = refused(refkernels_says("measure", *SMALL, *numpy, "--out", tmp_path / "file" / "x"))
    assert "choose another --out" in sentence
    if Path("/proc/self").is_dir():
        sentence = refused(refkernels_says("measure", *SMALL, *numpy, "--out", "/proc/self"))
        assert "/proc/self cannot be written" in sentence


def test_a_pattern_s_brackets_are_a_case_name_s_own() -> None:
    listed = refkernels_says("measure", "--list", "--case", "matmul/k_sweep[K=3,seed=0]")
    assert listed.stdout.splitlines()[0].startswith("matmul/k_sweep[K=3,seed=0]  (")
    assert listed.stdout.splitlines()[1] == "1 cases, 8 units."
    many = refkernels_says("measure", "--list", "--case", "*/k_sweep[[]K=?,*")
    assert many.exit_code == 2  # no character classes: their brackets would be ambiguous


def test_a_run_writes_records_and_report_and_ends_with_0(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    ran = refkernels_says("measure", *SMALL, "--framework", "fake_correct", "--out", out)
    assert ran.exit_code == 0, ran.output
    assert "report.html" in ran.stdout
    assert {"records.jsonl", "report.html", "report.md", "run.json"} <= {
        path.name for path in out.iterdir()
    }
    (out / "report.html").unlink()
    assert refkernels_says("report", out).exit_code == 0
    assert (out / "report.html").exists()


def test_a_repeated_question_is_measured_once(tmp_path: Path) -> None:
    twice = ["--framework", "fake_correct", "--framework", " fake_correct", "--op", "tan", *SMALL]
    ran = refkernels_says("measure", *SMALL, *twice, "--op", "tan", "--out", tmp_path)
    assert ran.exit_code == 0
    lines = (tmp_path / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    measured = [r for r in records if r["kind"] == "measurement"]
    assert [(r["direction"], r["device"]) for r in measured] == [
        ("forward", "cpu"),
        ("forward", "fake:0"),
        ("backward", "cpu"),
        ("backward", "fake:0"),
    ]


def test_numbers_however_wrong_are_data_and_end_with_0(tmp_path: Path) -> None:
    ran = refkernels_says("measure", *SMALL, "--framework", "fake_one_ulp_off", "--out", tmp_path)
    assert ran.exit_code == 0


@pytest.mark.parametrize(
    ("level", "status"),
    [("rounding", 1), ("unusual", 1), ("exceeds_bound", 0), ("special_value_mismatch", 0)],
)
def test_fail_on_ends_with_1_where_an_output_is_that_or_worse(
    tmp_path: Path, level: str, status: int
) -> None:
    """One ulp off is rounding, and here four times the error of one rounding: unusual."""
    arguments = [*SMALL, "--framework", "fake_one_ulp_off", "--device", "cpu", "--out", tmp_path]
    ran = refkernels_says("measure", *arguments, "--fail-on", level)
    assert ran.exit_code == status, ran.output
    line = f"--fail-on {level}: fake_one_ulp_off forward float32 tan/array_size[n=1,seed=0]: y is"
    assert (line in ran.stderr) == bool(status)


def test_fail_on_takes_the_levels_and_nothing_else(tmp_path: Path) -> None:
    for level, words in (("unusal", "did you mean 'unusual'?"), ("correctly_rounded", "unknown:")):
        sentence = refused(refkernels_says("measure", *SMALL, "--fail-on", level))
        assert words in sentence
        assert "special_value_mismatch" in sentence


def test_a_framework_that_fails_ends_with_1_and_the_report_says_on_what(tmp_path: Path) -> None:
    case = ["--case", "sin/array_size[n=1,seed=0]", "--dtype", "float32"]
    frameworks = ["--framework", "fake_exception", "--framework", "fake_correct"]
    assert refkernels_says("measure", *case, *frameworks, "--out", tmp_path).exit_code == 1
    assert "planted: the first line" in (tmp_path / "report.md").read_text(encoding="utf-8")
    again = refkernels_says("measure", *case, *frameworks, "--out", tmp_path, "--resume")
    assert again.exit_code == 1  # nothing to do, and the fault is still there


def test_a_framework_asked_for_by_name_and_missing_ends_with_1(tmp_path: Path) -> None:
    frameworks = ["--framework", "fake_missing", "--framework", "fake_correct"]
    assert refkernels_says("measure", *SMALL, *frameworks, "--out", tmp_path).exit_code == 1
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "refkernels env create fake_missing" in markdown.replace("\\_", "_")


def test_a_device_that_nobody_has_ends_with_2(tmp_path: Path) -> None:
    question = [*SMALL, "--framework", "fake_correct", "--device", "cuda", "--out", tmp_path]
    ran = refkernels_says("measure", *question)
    assert ran.exit_code == 2
    assert "no framework reports a device 'cuda' here: fake_correct has cpu, fake:0" in ran.stderr
    assert "Traceback" not in ran.output


def test_settings_reach_the_records(tmp_path: Path) -> None:
    settings = ["--set", "OMP_NUM_THREADS=1", "--set", "fake_precision=medium"]
    question = [*SMALL, "--framework", "fake_correct", "--device", "cpu", *settings]
    assert refkernels_says("measure", *question, "--out", tmp_path).exit_code == 0
    lines = (tmp_path / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    recorded = [record["settings"] for record in records if record["kind"] != "agreement"]
    assert len(recorded) == 3
    assert all(t == {"OMP_NUM_THREADS": "1", "fake_precision": "medium"} for t in recorded)


def test_an_op_without_a_numpy_kernel_is_reported_as_a_formula(tmp_path: Path) -> None:
    case = ["--case", "linear/k_sweep[K=3,seed=0]", "--case", "matmul/k_sweep[K=3,seed=0]"]
    frameworks = ["--framework", "numpy", "--framework", "fake_correct", "--device", "cpu"]
    question = [*case, "--dtype", "float32", *frameworks, "--out", tmp_path]
    assert refkernels_says("measure", *question).exit_code == 0
    lines = (tmp_path / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    measured = [record for record in records if record["kind"] == "measurement"]
    rows = {(record["op"], record["framework"], record["formula"]) for record in measured}
    assert rows == {
        ("linear", "numpy", "NumPy formula"), ("matmul", "numpy", None),
        ("linear", "fake_correct", None), ("matmul", "fake_correct", None),
    }  # fmt: skip
    pairs = {
        (record["op"], *sorted((record["a"], record["b"]))) for record in records if "a" in record
    }
    assert pairs == {
        ("linear", "NumPy formula", "fake_correct"), ("matmul", "fake_correct", "numpy")
    }  # fmt: skip
    assert "NumPy formula" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_report_of_nothing_is_one_sentence(tmp_path: Path) -> None:
    assert "does not exist" in refused(refkernels_says("report", tmp_path / "nowhere"))
    (tmp_path / "file").touch()
    assert "Not a directory" in refused(refkernels_says("report", tmp_path / "file"))
    records = tmp_path / "records.jsonl"
    records.write_text('{"schema": 1,\n')
    assert "records.jsonl, line 1" in refused(refkernels_says("report", tmp_path))
    records.write_bytes(b"\xff\xfe\n")
    assert "not UTF-8" in refused(refkernels_says("report", tmp_path))
    records.write_text("")
    empty = refkernels_says("report", tmp_path)
    assert empty.exit_code == 0
    assert "There are no measurements in these records." in empty.stdout


def test_environments_are_listed_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    listed = refkernels_says("env", "list")
    assert listed.exit_code == 0
    lines = {line.split()[0]: line for line in listed.stdout.splitlines() if line.strip()}
    assert "ready" in lines["numpy"]
    assert "env create fake_missing" in lines["fake_missing"]


def test_environments_are_listed_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path))
    listed = json.loads(refkernels_says("env", "list", "--json").stdout)
    assert (listed["schema"], listed["kind"]) == (1, "environments")
    (entry,) = [entry for entry in listed["environments"] if entry["name"] == "numpy"]
    assert (entry["state"], entry["path"]) == ("ready", sys.executable)
    (tmp_path / "interpreters.json").write_text("{")
    assert "repair or delete it" in refused(refkernels_says("env", "list"))


def test_the_ops_are_listed_with_who_has_them() -> None:
    listing = json.loads(refkernels_says("ops", "--json").stdout)
    assert (listing["schema"], listing["kind"]) == (1, "ops")
    rows = {row["op"]: row for row in listing["ops"]}
    assert list(rows) == list(registry.ops())
    layernorm = rows["layernorm"]
    assert layernorm["inputs"] == ["x", "weight", "bias"]
    assert layernorm["optional"] == ["weight", "bias"]
    assert layernorm["outputs"] == ["y", "mean", "rstd"]
    assert layernorm["backward"]["outputs"] == ["dx", "dweight", "dbias"]
    assert layernorm["params"] == {"eps": 1e-5, "normalized_shape": None}
    assert layernorm["frameworks"]["torch"] is None
    assert rows["erf"]["frameworks"]["numpy"] == "its adapter has no op named erf"
    assert all(set(row["frameworks"]) == set(catalog.names()) for row in rows.values())
    assert all(row["dtypes"] and row["cases"] for row in rows.values())
    (alone,) = json.loads(refkernels_says("ops", "adamw", "--json").stdout)["ops"]
    assert alone == rows["adamw"]
    assert "There is no op 'adamww'" in refused(refkernels_says("ops", "adamww"))
    lines = refkernels_says("ops").stdout.splitlines()
    assert {line.partition("(")[0] for line in lines if not line.startswith(" ")} >= set(rows)


def test_the_list_of_ops_fits_and_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    text = refkernels_says("ops").stdout
    assert max(map(len, text.splitlines())) <= 64
    words = set(re.split(r"[\s,;()]+", text))
    for row in json.loads(refkernels_says("ops", "--json").stdout)["ops"]:
        names = [f"[{name}]" if name in row["optional"] else name for name in row["inputs"]]
        names += [row["op"], *row["outputs"], *row["backward"]["outputs"], *row["params"]]
        names += [name for name, reason in row["frameworks"].items() if reason is not None]
        assert words.union(word.partition("=")[0] for word in words).issuperset(names), row["op"]


@pytest.fixture
def two_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two managed environments of numpy: folders that hold a file each."""
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path))
    folders = [tmp_path / "environments" / f"numpy-{version}" for version in ("1.26.4", "2.4.0")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "file").write_text("4 GB")
    return folders


def test_remove_undoes_add_and_leaves_the_managed_environments(
    two_environments: list[Path],
) -> None:
    added = refkernels_says("env", "add", "numpy", sys.executable)
    assert (added.exit_code, sys.executable in added.stdout) == (0, True)
    removed = refkernels_says("env", "remove", "numpy", "--yes")
    assert (removed.exit_code, f"Forgotten: {sys.executable}" in removed.stdout) == (0, True)
    assert all(str(folder) in removed.stdout for folder in two_environments)
    assert all((folder / "file").exists() for folder in two_environments)


def test_managed_environments_are_deleted_only_where_the_user_agrees(
    two_environments: list[Path],
) -> None:
    older, newer = two_environments
    nobody = refkernels_says("env", "remove", "numpy")
    assert nobody.exit_code == 2
    assert "nothing was deleted: `refkernels env remove numpy --yes`" in nobody.stderr
    assert all(str(folder) in nobody.stderr for folder in two_environments)
    no = refkernels_says("env", "remove", "numpy", input="n\n")
    assert no.exit_code == 1
    assert older.exists()
    assert newer.exists()
    removal = refkernels_says("env", "remove", "numpy==1.26.4", input="y\n")
    assert (removal.exit_code, removal.stdout.endswith(f"Deleted: {older}\n")) == (0, True)
    assert newer.exists()
    yes = refkernels_says("env", "remove", "numpy", "--yes")
    assert (yes.exit_code, yes.stdout) == (0, f"Deleted: {newer}\n")
    assert not newer.exists()
    sentence = refused(refkernels_says("env", "remove", "numpy"))
    assert sentence == "no environment of numpy is kept here: see `refkernels env list`."


def test_what_was_added_in_a_version_is_removed_by_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFKERNELS_HOME", str(tmp_path))
    name = f"numpy=={numpy.__version__}"
    assert refkernels_says("env", "add", name, sys.executable).exit_code == 0
    sentence = refused(refkernels_says("env", "remove", "numpy"))
    assert f"see `refkernels env remove {name}`" in sentence
    assert refkernels_says("env", "remove", name).exit_code == 0
    assert "env list" in refused(refkernels_says("env", "remove", name))


def test_every_module_of_the_command_line_is_a_command() -> None:
    folder = Path(cli.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "app"}
    command: Any = typer.main.get_command(app)
    assert modules == set(command.commands)
    listed = refkernels_says("--help", terminal_width=80).stdout.split("Commands:")[1]
    assert "..." not in listed  # a line says it whole


def test_help_needs_no_numerical_library() -> None:
    code = (
        "import sys; sys.argv[1:] = ['measure', '--help']; from refkernels.cli.app import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'numba', 'matplotlib', 'execnet', 'mpmath'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_an_op_without_its_option_is_refused_with_the_command_to_type() -> None:
    result = refkernels_says("measure", "softmax", "exp")
    assert result.exit_code == 2
    assert "write refkernels measure --op softmax --op exp." in result.stderr.replace("\n", " ")
    assert "--op" not in refkernels_says("env", "list", "softmax").stderr  # it has no such option
