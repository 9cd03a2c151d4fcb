"""The pytest plugin: loaded at start-up by its entry point, so it imports nothing heavy.

It rewrites the asserts of `refkernels.testing`, offers the fixture `assert_kernel`, and ends the
run with how many oracle assertions ran and how close the worst came to its bound.
"""

import sys
from typing import Any

import pytest

pytest.register_assert_rewrite("refkernels.testing")


@pytest.fixture(name="assert_kernel")
def assert_kernel_fixture() -> Any:
    """`refkernels.testing.assert_kernel`, imported when a test asks for it."""
    from refkernels.testing import assert_kernel

    return assert_kernel


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line, and only where an oracle assertion ran."""
    module = sys.modules.get("refkernels.testing")
    tally = getattr(module, "tally", None)
    if tally is None or not tally.assertions:
        return
    terminalreporter.section("refkernels")
    terminalreporter.write_line(
        f"oracle assertions: {tally.assertions}; largest error / bound "
        f"{tally.largest_ratio:.3g} ({tally.where})"
    )
