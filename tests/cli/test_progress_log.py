"""A log that is no terminal gets a line every 10 % or 20 s, never one for each unit."""

from refkernels.cli.shared.progress import Log


def test_a_line_every_tenth_or_twenty_seconds() -> None:
    lines: list[str] = []
    now = 0.0
    log = Log(lines.append, lambda: now)
    for done in range(401):  # half a second each: 40 units are 10 % and take 20 s
        log.show(done, 400, f"unit {done}")
        now += 0.5
    assert len(lines) == 10
    assert lines[0] == "10 %, 40 of 400, 3 min left: unit 40"
    assert lines[-1] == "100 %, 400 of 400, 0 s left: unit 400"


def test_a_unit_that_takes_long_is_named_while_nothing_else_happens() -> None:
    lines: list[str] = []
    now = 0.0
    log = Log(lines.append, lambda: now)
    log.show(0, 1000, "first")
    assert lines == []
    now = 21.0
    log.show(1, 1000, "second")
    assert lines == ["0 %, 1 of 1,000, 350 min left: second"]
