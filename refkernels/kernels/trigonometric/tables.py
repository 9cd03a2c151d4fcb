"""Constants of the trigonometric oracle, from tables.json; high part before low.

`python tools/generate_trig_tables.py` writes that file, and describes each table in it.
"""

from pathlib import Path

from refkernels.arithmetic.tables import Tables

_tables = Tables(Path(__file__).with_name("tables.json"))

PI_HIGH, PI_LOW = _tables.pair("PI")
PIO2_HIGH, PIO2_LOW = _tables.pair("PIO2")
SIXTH_HIGH, SIXTH_LOW = _tables.pair("SIXTH")
ONE_120TH_HIGH, ONE_120TH_LOW = _tables.pair("ONE_120TH")
ONE_24TH_HIGH, ONE_24TH_LOW = _tables.pair("ONE_24TH")
THIRD_HIGH, THIRD_LOW = _tables.pair("THIRD")
FIFTH_HIGH, FIFTH_LOW = _tables.pair("FIFTH")
TWO_OVER_PI = _tables.integers("TWO_OVER_PI")
SINE_COSINE = _tables.rows("SINE_COSINE")
ARC_TANGENT = _tables.rows("ARC_TANGENT")
QUADRANTS = _tables.rows("QUADRANTS")
SINE = _tables.numbers("SINE")
COSINE = _tables.numbers("COSINE")
ASIN = _tables.numbers("ASIN")
ATAN = _tables.numbers("ATAN")
