"""Polynomials of the error function, from erf_tables.json; lowest degree first, high part before
low.

`python tools/generate_erf_tables.py` writes that file, describes each table in it, and proves each
ERROR: approximation, rounded coefficients and Horner's rule together, relative to the function, for
an exact argument. PAIRS: how many coefficients have two parts.
"""

from pathlib import Path

from refkernels.arithmetic.tables import Tables

_tables = Tables(Path(__file__).with_name("erf_tables.json"))

TWO_OVER_SQRT_PI_HIGH, TWO_OVER_SQRT_PI_LOW = _tables.pair("TWO_OVER_SQRT_PI")
ONE_OVER_SQRT_PI_HIGH, ONE_OVER_SQRT_PI_LOW = _tables.pair("ONE_OVER_SQRT_PI")
SQRT_HALF_HIGH, SQRT_HALF_LOW = _tables.pair("SQRT_HALF")
DENSITY_HIGH, DENSITY_LOW = _tables.pair("DENSITY")
TANH_LINEAR_HIGH, TANH_LINEAR_LOW = _tables.pair("TANH_LINEAR")
TANH_CUBIC_HIGH, TANH_CUBIC_LOW = _tables.pair("TANH_CUBIC")

FAST_TAIL, FAST_TAIL_SHIFT = _tables.numbers("FAST_TAIL"), _tables.number("FAST_TAIL_SHIFT")
FAST_UPPER, FAST_UPPER_SHIFT = _tables.numbers("FAST_UPPER"), _tables.number("FAST_UPPER_SHIFT")
FAST_ERF = _tables.numbers("FAST_ERF")
ERFCX, ERFCX_PAIRS = _tables.rows("ERFCX"), 11
ERF_SERIES, ERF_SERIES_PAIRS = _tables.numbers("ERF_SERIES"), 12

FAST_TAIL_ERROR = _tables.number("FAST_TAIL_ERROR")
FAST_UPPER_ERROR = _tables.number("FAST_UPPER_ERROR")
FAST_ERF_ERROR = _tables.number("FAST_ERF_ERROR")
ERFCX_ERROR = _tables.number("ERFCX_ERROR")
ERF_SERIES_ERROR = _tables.number("ERF_SERIES_ERROR")
