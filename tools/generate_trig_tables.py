"""Writes refkernels/kernels/trigonometric/tables.json: the trigonometric oracle's constants.

mpmath computes them.

    python tools/generate_trig_tables.py

The error of each polynomial is proven over its whole interval: see tools/polynomials.py.
"""

import mpmath
import polynomials
from table_file import PACKAGE, Table, write

TARGET = PACKAGE / "kernels" / "trigonometric" / "tables.json"
ABOUT = "Written by tools/generate_trig_tables.py (mpmath, 2000 bits); high part before low."
WORDS = 22  # one of zeros, then 21 * 64 = 1344 bits of 2/pi; the last exponent needs 1289
STEPS = 128  # the table's arguments are k / 128
LAST = 101  # rint(128 * pi / 4)
CHUNK = 29  # bits: times the 24 of a float32's significand, exact in float64
REDUCED_FROM = 126  # biased exponent of the first float32 binade that reaches pi/4


def double(value: mpmath.mpf) -> float:
    return float(value)  # mpmath rounds to nearest


def pair(value: mpmath.mpf) -> list[float]:
    high = double(value)
    return [high, double(value - high)]


def two_over_pi() -> Table:
    bits = int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, 64 * (WORDS - 1))))
    words = [(bits >> (64 * (WORDS - 1 - k))) & (2**64 - 1) for k in range(WORDS)]
    about = "64 zero bits, then 2/pi = 0.101000101111..., most significant word first."
    return Table("TWO_OVER_PI", about, [[word] for word in words])


def sine_cosine() -> Table:
    angles = [mpmath.mpf(k) / STEPS for k in range(LAST + 1)]
    rows = [[*pair(mpmath.sin(angle)), *pair(mpmath.cos(angle))] for angle in angles]
    return Table("SINE_COSINE", f"Row k: sin(k/{STEPS}) and cos(k/{STEPS}).", rows)


def arc_tangent() -> Table:
    rows = [pair(mpmath.atan(mpmath.mpf(k) / STEPS)) for k in range(STEPS + 1)]
    return Table("ARC_TANGENT", f"Row k: atan(k/{STEPS}).", rows)


def quadrants() -> Table:
    about = (
        "Row e, for a float32 of biased exponent e: 2/pi without what adds multiples of 4 "
        f"quadrants to x 2/pi, in chunks of {CHUNK}, {CHUNK} and 53 bits; for the small, in one "
        "of 53."
    )
    return Table("QUADRANTS", about, [[*chunks(biased)] for biased in range(256)])


def chunks(biased: int) -> tuple[float, float, float]:
    """A row of QUADRANTS. That of the last binade serves infinities and NaN too: infinity times
    zero is NaN."""
    if biased < REDUCED_FROM:
        return 0.0, 0.0, double(2 / mpmath.pi)
    unit = mpmath.mpf(2) ** (biased - 150)  # x = m unit, m < 2^24
    remaining = mpmath.fmod(2 / mpmath.pi * unit, 4)
    parts = []
    for k in (1, 2):
        quantum = mpmath.mpf(2) ** (2 - k * CHUNK)
        part = mpmath.floor(remaining / quantum) * quantum
        remaining -= part
        parts.append(double(part / unit))
    return parts[0], parts[1], double(remaining / unit)


def tables() -> list[Table]:
    """All tables but the polynomials."""
    mpmath.mp.prec = 2000
    constants = {
        "PI": ("pi", +mpmath.pi),
        "PIO2": ("pi / 2", mpmath.pi / 2),
        "SIXTH": ("1/6", 1 / mpmath.mpf(6)),
        "ONE_120TH": ("1/120", 1 / mpmath.mpf(120)),
        "ONE_24TH": ("1/24", 1 / mpmath.mpf(24)),
        "THIRD": ("1/3", 1 / mpmath.mpf(3)),
        "FIFTH": ("1/5", 1 / mpmath.mpf(5)),
    }
    constant_tables = [
        Table(name, about, [pair(value)]) for name, (about, value) in constants.items()
    ]
    return [*constant_tables, two_over_pi(), sine_cosine(), arc_tangent(), quadrants()]


if __name__ == "__main__":
    write(TARGET, ABOUT, [*tables(), *polynomials.tables()])
