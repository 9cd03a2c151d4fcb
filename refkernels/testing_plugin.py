"""The pytest plugin. Its entry point loads it at start-up, so it imports nothing heavy.

It rewrites the asserts of `refkernels.testing`, offers the fixture `assert_kernel`, and ends the
run with a line of figures: the number of oracle assertions, the largest error / bound, and the
number of unusual errors.
"""

import sys
from typing import Any

import pytest

from refkernels.importing import install

install()  # before pytest's own finder, which rewrites an installed plugin's whole package
pytest.register_assert_rewrite("refkernels.testing")

# Assertions, unusual errors, the largest error / bound, the test in which it occurred.
Figures = tuple[int, int, float, str]
_NOTHING: Figures = (0, 0, -1.0, "")
_of_workers: list[Figures] = []


@pytest.fixture(name="assert_kernel")
def assert_kernel_fixture() -> Any:
    """`refkernels.testing.assert_kernel`, imported when a test requests it."""
    from refkernels.testing import assert_kernel

    return assert_kernel


def pytest_sessionfinish(session: Any) -> None:
    """A worker of pytest-xdist passes its figures to the process that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["refkernels"] = _own_figures()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collects the figures of a worker of pytest-xdist."""
    _of_workers.append(tuple(getattr(node, "workeroutput", {}).get("refkernels", _NOTHING)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints one line if an oracle assertion ran."""
    processes = [_own_figures(), *_of_workers]
    assertions = sum(figures[0] for figures in processes)
    unusual = sum(figures[1] for figures in processes)
    if not assertions:
        return
    ratio, where = max((figures[2:] for figures in processes), key=lambda worst: worst[0])
    ending = f"; unusual errors: {unusual}" if unusual else ""
    terminalreporter.section("refkernels")
    terminalreporter.write_line(
        f"oracle assertions: {assertions}; largest error / bound {ratio:.3g} ({where}){ending}"
    )


def _own_figures() -> Figures:
    tally = getattr(sys.modules.get("refkernels.testing.tally"), "TALLY", None)
    if tally is None or not tally.assertions:
        return _NOTHING
    return tally.assertions, tally.unusual, tally.largest_ratio, tally.where
