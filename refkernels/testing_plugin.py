"""The pytest plugin: loaded at start-up by its entry point, so it imports nothing heavy.

It rewrites the asserts of `refkernels.testing`, offers the fixture `assert_kernel`, and ends the
run with how many oracle assertions ran, how close the worst came to its bound, and how many errors
were unusual.
"""

import sys
from typing import Any

import pytest

from refkernels.importing import install

install()  # before pytest's own finder, which rewrites an installed plugin's whole package
pytest.register_assert_rewrite("refkernels.testing")

# Assertions, unusual errors, the largest error / bound, the test it was in.
Figures = tuple[int, int, float, str]
_NOTHING: Figures = (0, 0, -1.0, "")
_of_workers: list[Figures] = []


@pytest.fixture(name="assert_kernel")
def assert_kernel_fixture() -> Any:
    """`refkernels.testing.assert_kernel`, imported when a test asks for it."""
    from refkernels.testing import assert_kernel

    return assert_kernel


def pytest_sessionfinish(session: Any) -> None:
    """A worker of pytest-xdist hands its figures to the process that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["refkernels"] = _own_figures()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes the figures of a worker of pytest-xdist."""
    _of_workers.append(tuple(getattr(node, "workeroutput", {}).get("refkernels", _NOTHING)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line, and only where an oracle assertion ran."""
    figures = [_own_figures(), *_of_workers]
    assertions = sum(one[0] for one in figures)
    unusual = sum(one[1] for one in figures)
    if not assertions:
        return
    ratio, where = max((one[2:] for one in figures), key=lambda one: one[0])
    said = f"; unusual errors: {unusual}" if unusual else ""
    terminalreporter.section("refkernels")
    terminalreporter.write_line(
        f"oracle assertions: {assertions}; largest error / bound {ratio:.3g} ({where}){said}"
    )


def _own_figures() -> Figures:
    tally = getattr(sys.modules.get("refkernels.testing.tally"), "TALLY", None)
    if tally is None or not tally.assertions:
        return _NOTHING
    return tally.assertions, tally.unusual, tally.largest_ratio, tally.where
