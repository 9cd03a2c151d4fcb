"""Constants of exp and log, from tables.json; high part before low.

`python tools/generate_elementary_tables.py` writes that file, and describes each table in it.
"""

from pathlib import Path

from refkernels.arithmetic.tables import Tables

_tables = Tables(Path(__file__).with_name("tables.json"))

LN2_HIGH, LN2_LOW = _tables.pair("LN2")
INV_LN2_HIGH, INV_LN2_LOW = _tables.pair("INV_LN2")
LN10_HIGH, LN10_LOW = _tables.pair("LN10")
INV_LN10_HIGH, INV_LN10_LOW = _tables.pair("INV_LN10")
LOG10_2_HIGH, LOG10_2_LOW = _tables.pair("LOG10_2")
SIXTH_HIGH, SIXTH_LOW = _tables.pair("SIXTH")
THIRD_HIGH, THIRD_LOW = _tables.pair("THIRD")
FIFTH_HIGH, FIFTH_LOW = _tables.pair("FIFTH")
ONE_24TH_HIGH, ONE_24TH_LOW = _tables.pair("ONE_24TH")
ONE_120TH_HIGH, ONE_120TH_LOW = _tables.pair("ONE_120TH")
ONE_720TH_HIGH, ONE_720TH_LOW = _tables.pair("ONE_720TH")
LN2_A, LN2_B = _tables.pair("LN2_PARTS")
STEP_A, STEP_B, STEP_C = _tables.numbers("STEP_PARTS")
EXP2, LOGS = _tables.rows("EXP2"), _tables.rows("LOGS")
