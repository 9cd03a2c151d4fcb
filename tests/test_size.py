"""No room of the project grows beyond the lines that tests/size.txt allows it."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
OTHERS = ("tests", "benchmarks", "tools")


def counted() -> Counter[str]:
    """The lines of Python by room: a folder of the package, all of its single modules together, and
    each folder beside the package."""
    lines: Counter[str] = Counter()
    for folder in ("refkernels", *OTHERS):
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.relative_to(ROOT / folder).parts
            room = inside[0] if len(inside) > 1 else "modules"
            lines[folder if folder in OTHERS else f"refkernels/{room}"] += len(
                path.read_bytes().splitlines()
            )
    return lines


def allowed() -> dict[str, int]:
    """The table, without its comments."""
    table = (ROOT / "tests" / "size.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in table if line and not line.startswith("#")]
    return {room: int(lines) for room, lines in rows}


def test_no_room_has_more_lines_than_it_is_allowed() -> None:
    lines, most = counted(), allowed()
    assert lines.keys() == most.keys()
    above = [f"{room}: {lines[room]} of {most[room]}" for room in lines if lines[room] > most[room]]
    assert not above, "make something in the same room simpler: " + ", ".join(above)
