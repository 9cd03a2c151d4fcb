"""Every file that the Makefile names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_quick_tests_and_what_they_leave_out_are_there() -> None:
    text = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (quick,) = re.findall(r"^QUICK := (.*)$", text, re.M)
    paths = [word.removeprefix("--ignore=").partition("::")[0] for word in quick.split()]
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []
