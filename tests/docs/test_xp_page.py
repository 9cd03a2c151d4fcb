"""docs/xp.md lists every name that a formula finds in `xp`."""

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels.contexts.context import Context

ROOT = Path(__file__).parent.parent.parent
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "write_xp.py"))
PAGE = (ROOT / "docs" / "xp.md").read_text(encoding="utf-8")


def test_the_page_is_that_of_the_code() -> None:
    assert TOOL["page"]() == PAGE, "python tools/write_xp.py writes it again"
    operators = runpy.run_path(str(ROOT / "tools" / "write_operators.py"))
    written = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert operators["page"]() == written, "python tools/write_operators.py writes it again"


def test_the_table_of_coverage_names_what_there_is() -> None:
    """The tool refuses a line of its lists that names an op, a call or an operator that is not."""
    tool = runpy.run_path(str(ROOT / "tools" / "write_coverage.py"))
    written = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert tool["page"]() == written, "python tools/write_coverage.py writes it again"
    with pytest.raises(AssertionError, match="there is no op sine"):
        tool["target"]("ONNX", "Sin", "sine")


def test_every_public_name_is_listed_once_with_its_meaning() -> None:
    methods = vars(Context).items()
    public = {n for n, m in methods if inspect.isfunction(m) and not n.startswith("_")}
    rows = re.findall(r"^\| `xp\.(\w+)\(.*\)` \| (\S.*) \|$", PAGE, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(public)
    assert all(meaning.endswith(".") for _, meaning in rows)


@pytest.mark.parametrize(
    ("formula", "answers"),
    [
        (lambda xp, x: xp.maximum(x, 0), False),
        (lambda xp, x: xp.maximum(x, xp.number(0)), True),
        (lambda xp, x: xp.clip(x, 0, 1), True),
        (lambda xp, x: 2 * x + 1, True),
        (lambda xp, x: x * 0.5, False),
        (lambda xp, x: x**2, False),
        (lambda xp, x: x if x > 0 else -x, False),
        (lambda xp, x: xp.where((x > 0) & ~(x > 1), x, -x), True),
    ],
)
def test_what_the_page_says_of_operators_holds(formula: Any, answers: bool) -> None:
    mine = refkernels.oracle(formula, "x[...] -> y[...]")
    if answers:
        assert mine.forward(np.ones(3, np.float32)).shape == (3,)
        return
    with pytest.raises(TypeError):
        mine.forward(np.ones(3, np.float32))
