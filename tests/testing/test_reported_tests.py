"""The plugin's report of what tests asserted, and a kernel compared with a baseline."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_runs import run_pytest

from refkernels import reporting
from refkernels.testing import assert_kernel
from refkernels.testing.baseline import Baselines, NoBaseline

ASSERTED = """
import numpy as np
import pytest
X = np.linspace(-3, 3, 7, dtype=np.float32)
@pytest.mark.parametrize("scale", [1, 2])
def test_my_sin(assert_kernel, scale):
    assert_kernel("sin", {"x": X * scale}, np.sin(X.astype(float) * scale).astype(np.float32))
    assert_kernel("sin", {"x": X}, np.sin(X))
def test_wrong_cos(assert_kernel):
    assert_kernel("cos", {"x": X}, np.sin(X))
"""


Ran = Callable[[int], tuple[str, Path]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """ran(processes): what pytest printed, and where the report is."""

    @functools.cache
    def get(processes: int) -> tuple[str, Path]:
        if processes:
            pytest.importorskip("xdist")
        folder = tmp_path_factory.mktemp("reported")
        options = [f"-n{processes}"] if processes else []
        out = folder / "out"
        return run_pytest(folder, ASSERTED, "--refkernels-report", str(out), *options), out

    return get


@pytest.mark.parametrize("processes", [2, 0])
def test_what_tests_asserted_is_a_report_in_one_process_and_in_several(
    processes: int, ran: Ran
) -> None:
    text, out = ran(processes)
    assert "1 failed, 2 passed" in text, text
    assert f"oracle report: {out / 'report.html'}" in text
    records = reporting.read_records(out / "records.jsonl")
    named = [(r["framework"].rpartition(":")[2], r["case"]["name"], r["op"]) for r in records]
    assert sorted(named) == [
        ("test_my_sin", "sin/1", "sin"),
        ("test_my_sin", "sin/1 #2", "sin"),
        ("test_my_sin", "sin/2", "sin"),
        ("test_my_sin", "sin/2 #2", "sin"),
        ("test_wrong_cos", "cos/test", "cos"),
    ]
    verdicts = {r["framework"].rpartition(":")[2]: r["verdict"] for r in records}
    assert verdicts["test_wrong_cos"] == "invariant_violated"
    assert "test_wrong_cos" in (out / "report.md").read_text(encoding="utf-8")


def test_a_failure_in_several_processes_is_the_plain_message(ran: Ran) -> None:
    messages = [
        [line for line in ran(processes)[0].splitlines() if line.startswith("E  ")]
        for processes in (0, 2)
    ]
    assert messages[0] == messages[1]
    assert messages[0][0].startswith("E       AssertionError: cos y: invariant_violated: ")


X = np.random.default_rng(0).standard_normal((5, 33)).astype(np.float32)
KERNELS = """
import numpy as np
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
def nan_softmax(x):
    return softmax(x) * np.float32("nan")
"""


@pytest.fixture
def baselines() -> Baselines:
    return Baselines()


def test_a_kernel_is_compared_with_its_baseline(tmp_path: Path, baselines: Baselines) -> None:
    (tmp_path / "mine.py").write_text(KERNELS)
    exact = np.exp(X.astype(float))
    good = (exact / exact.sum(-1, keepdims=True)).astype(np.float32)
    target, worse = f"{tmp_path / 'mine.py'}:softmax", good * np.float32(1 + 5e-7)
    try:
        baselines.assert_not_worse("softmax", {"x": X}, good, than=target)
        with pytest.raises(AssertionError, match=r"times that of .*mine.py:softmax, and factor"):
            baselines.assert_not_worse("softmax", {"x": X}, worse, than=target)
        with pytest.raises(AssertionError, match="exceeds_bound"):
            baselines.assert_not_worse("softmax", {"x": X}, good * np.float32(1.01), than=target)
        # Beside a baseline that is wrong in kind, anything is not worse.
        wrong = f"{tmp_path / 'mine.py'}:nan_softmax"
        baselines.assert_not_worse("softmax", {"x": X}, good * np.float32(1.01), than=wrong)
        with pytest.raises(ValueError, match="no framework is named"):
            baselines.assert_not_worse("softmax", {"x": X}, good, than="no_such_framework")
    finally:
        baselines.close()


def test_a_baseline_that_is_not_installed_is_missing(
    baselines: Baselines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFKERNELS_REQUIRE", raising=False)
    with pytest.raises(NoBaseline, match=r"env create torch==1\.0\.1") as absent:
        baselines.assert_not_worse("softmax", {"x": X}, X, than="torch==1.0.1")
    assert absent.value.missing


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ({"factor": 0}, ValueError, "factor is 0: it must be a number > 0."),
        ({"factor": "2"}, TypeError, "factor is of type str: it must be a number > 0."),
        ({"params": {"axes": 3}}, ValueError, "softmax has no parameter 'axes'"),
    ],
)
def test_a_call_that_makes_no_sense_shows_the_callers_line_alone(
    named: dict[str, Any], error: type[Exception], words: str, baselines: Baselines
) -> None:
    with pytest.raises(error, match=words) as refused:
        baselines.assert_not_worse("softmax", {"x": X}, X, **named)
    stated = {"max_over_plain" if name == "factor" else name: v for name, v in named.items()}
    with pytest.raises(error, match=words.replace("factor is", "max_over_plain is")) as other:
        assert_kernel("softmax", {"x": X}, X, **stated)
    for caught in (refused, other):
        assert all("__tracebackhide__" in entry.frame.f_locals for entry in caught.traceback[1:])


MISSING = """
import numpy as np
def test_it(assert_not_worse):
    x = np.zeros(3, np.float32)
    assert_not_worse("sin", {"x": x}, x, than="torch==1.0.1")
"""


def test_the_fixture_skips_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFKERNELS_REQUIRE", raising=False)
    text = run_pytest(tmp_path, MISSING, "-rs")
    assert "1 skipped" in text, text
    assert "refkernels env create torch==1.0.1" in text
