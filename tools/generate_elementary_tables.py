"""Writes refkernels/kernels/elementary/tables.json: the constants of exp and log, from mpmath.

python tools/generate_elementary_tables.py
"""

import mpmath
from table_file import PACKAGE, Table, write

TARGET = PACKAGE / "kernels" / "elementary" / "tables.json"
ABOUT = "Written by tools/generate_elementary_tables.py (mpmath, 2000 bits); high part before low."
STEPS = 64  # of the exponential per octave
CELLS = 256  # of the logarithm per unit
FIRST, LAST = 181, 363  # rint(256 m) for m in [sqrt(1/2), sqrt 2], and one more


def double(value: mpmath.mpf) -> float:
    return float(value)  # mpmath rounds to nearest


def pair(value: mpmath.mpf) -> list[float]:
    high = double(value)
    return [high, double(value - high)]


def short(value: mpmath.mpf, bits: int) -> mpmath.mpf:
    """The value truncated to `bits` significant bits."""
    unit = mpmath.ldexp(1, mpmath.frexp(value)[1] - bits)
    return mpmath.floor(value / unit) * unit


def parts(value: mpmath.mpf, *widths: int) -> list[float]:
    """Parts of these widths, in bits, and a last one of a whole double."""
    leading = []
    for width in widths:
        part = short(value, width)
        leading.append(double(part))
        value -= part
    return [*leading, double(value)]


def exponentials() -> Table:
    rows = [pair(mpmath.power(2, mpmath.mpf(j) / STEPS)) for j in range(STEPS)]
    return Table("EXP2", f"Row j: 2^(j/{STEPS}).", rows)


def logarithms() -> Table:
    rows = []
    for k in range(FIRST, LAST + 1):
        c = mpmath.mpf(round(2 * CELLS * CELLS / k)) / (2 * CELLS)
        rows.append([double(c), *pair(-mpmath.log(c))])
    about = f"Row k - {FIRST}: c = rint({2 * CELLS * CELLS} / k) / {2 * CELLS}, and -log c."
    return Table("LOGS", about, rows)


def tables() -> list[Table]:
    mpmath.mp.prec = 2000
    ln2 = mpmath.log(2)
    constants = {
        "LN2": ("ln 2", ln2),
        "INV_LN2": ("1 / ln 2", 1 / ln2),
        "LN10": ("ln 10", mpmath.log(10)),
        "INV_LN10": ("1 / ln 10", 1 / mpmath.log(10)),
        "LOG10_2": ("log10 2", mpmath.log10(2)),
        "SIXTH": ("1/6", 1 / mpmath.mpf(6)),
        "THIRD": ("1/3", 1 / mpmath.mpf(3)),
        "FIFTH": ("1/5", 1 / mpmath.mpf(5)),
        "ONE_24TH": ("1/24", 1 / mpmath.mpf(24)),
        "ONE_120TH": ("1/120", 1 / mpmath.mpf(120)),
        "ONE_720TH": ("1/720", 1 / mpmath.mpf(720)),
    }
    constant_tables = [
        Table(name, about, [pair(value)]) for name, (about, value) in constants.items()
    ]
    exact = "Parts whose products with a short integer are exact: "
    return [
        *constant_tables,
        Table("LN2_PARTS", exact + "ln 2.", [parts(ln2, 40)]),
        Table("STEP_PARTS", exact + f"ln 2 / {STEPS}.", [parts(ln2 / STEPS, 36, 36)]),
        exponentials(),
        logarithms(),
    ]


if __name__ == "__main__":
    write(TARGET, ABOUT, tables())
