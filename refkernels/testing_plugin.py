"""The pytest plugin. pytest loads it at start-up through its entry point, so its imports are light.

It rewrites the asserts of `refkernels.testing`, provides the fixtures `assert_kernel` and
`assert_not_worse`, and ends the run with one line: the number of oracle assertions, the largest
error / bound, and the number of unusual errors; and with what the widest bound allows.
`--refkernels-report DIR` writes a report of the assertions.
"""

import sys
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from refkernels.importing import install

install()  # before pytest's own finder
for finder in sys.meta_path:  # pytest's would rewrite the whole package of an installed plugin
    getattr(finder, "_must_rewrite", set()).discard("refkernels")
pytest.register_assert_rewrite("refkernels.testing")

# Assertions, unusual errors, the largest error / bound and where, the widest bound and where.
Figures = tuple[int, int, float, str, float, str]
_NOTHING: Figures = (0, 0, -1.0, "", 0.0, "")
_of_workers: list[Figures] = []
_lines_of_workers: list[str] = []


def pytest_addoption(parser: Any) -> None:
    """Adds `--refkernels-report`."""
    parser.getgroup("refkernels").addoption(
        "--refkernels-report",
        metavar="DIR",
        help="Write what the oracle assertions measured as a report to this folder.",
    )


def pytest_configure(config: Any) -> None:
    """Records the assertions if a report is requested."""
    if config.getoption("--refkernels-report"):
        from refkernels.testing.recording import RECORDING

        RECORDING.on = True


@pytest.fixture(name="assert_kernel")
def assert_kernel_fixture() -> Any:
    """`refkernels.testing.assert_kernel`, imported when a test requests it."""
    from refkernels.testing import assert_kernel

    return assert_kernel


@pytest.fixture(scope="session")
def _baselines() -> Iterator[Any]:
    from refkernels.testing.baseline import Baselines

    baselines = Baselines()
    yield baselines
    baselines.close()


@pytest.fixture
def assert_not_worse(_baselines: Any) -> Any:
    """`refkernels.testing.baseline.Baselines.assert_not_worse`. If the baseline is missing, the
    test is skipped visibly, or fails if $REFKERNELS_REQUIRE lists the baseline."""
    from refkernels.testing.baseline import NoBaseline

    def assert_not_worse(*arguments: Any, **named: Any) -> None:
        __tracebackhide__ = True
        try:
            _baselines.assert_not_worse(*arguments, **named)
        except NoBaseline as reason:
            (pytest.skip if reason.missing else pytest.fail)(str(reason))

    return assert_not_worse


def pytest_sessionfinish(session: Any) -> None:
    """A pytest-xdist worker passes its figures and records to the process that prints them."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["refkernels"] = _own_figures()
        output["refkernels_lines"] = _own_lines()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collects the figures and records of a pytest-xdist worker."""
    output = getattr(node, "workeroutput", {})
    _of_workers.append(tuple(output.get("refkernels", _NOTHING)))
    _lines_of_workers.extend(output.get("refkernels_lines", ()))


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Prints one line if an oracle assertion ran, and another if a report is written."""
    processes = [_own_figures(), *_of_workers]
    assertions = sum(figures[0] for figures in processes)
    if not assertions:
        return
    ratio, where = max((figures[2:4] for figures in processes), key=lambda worst: worst[0])
    width, widest = max((figures[4:] for figures in processes), key=lambda worst: worst[0])
    ending = f"; unusual errors: {n}" if (n := sum(figures[1] for figures in processes)) else ""
    terminalreporter.section("refkernels")
    terminalreporter.write_line(
        f"oracle assertions: {assertions}; largest error / bound {ratio:.3g} ({where}){ending}"
    )
    if width > 0.01:  # of the result
        terminalreporter.write_line(
            f"on some inputs rounding alone may cost {min(width, 1.0):.0%} of the result "
            f"({widest}): smaller faults pass there; refkernels.testing.cases shows them"
        )
    lines = [*_own_lines(), *_lines_of_workers]
    if folder := config.getoption("--refkernels-report") if lines else None:
        from refkernels.testing.recording import write

        terminalreporter.write_line(f"oracle report: {write(Path(folder), lines)}")


def _own_figures() -> Figures:
    tally = getattr(sys.modules.get("refkernels.testing.tally"), "TALLY", None)
    return astuple(tally) if tally is not None and tally.assertions else _NOTHING


def _own_lines() -> list[str]:
    recording = getattr(sys.modules.get("refkernels.testing.recording"), "RECORDING", None)
    return [] if recording is None else recording.lines
