"""The rules for special values: what is said of an element beside, or instead of, its ULP error.

Every element gets a set of flags. In order of the rules:
- any NaN equals any NaN; a NaN on one side only is a mismatch, never a number;
- an infinity that the mathematics gives (1/0, inf + 1) must be met with that infinity;
- an exact zero met with a nonzero is counted apart and left out of the ULP statistics: one such
  element, measured in the smallest subnormal, would drown all others;
- the sign of an exact zero is counted apart: the real number 0 has none;
- an infinity where the exact value rounds to a finite number counts as 2^(emax + 1); where the
  exact value rounds to infinity, infinity is right;
- sign changes and flushed subnormals are numbers like any other, and flagged.
"""

COMPARED = 1  # has an ULP error
CORRECT = 2  # the bits of the certified rounding (the sign of an exact zero apart)
UNDECIDED = 4  # the enclosure is too wide to say whether the bits are right
FAITHFUL = 8  # certainly one of the two floats around the exact value, or equal to it
SPECIAL_MISMATCH = 16
EXPECTED_SPECIAL = 32  # the right answer is NaN or an infinity
SIGNED_ZERO = 64  # zero with the other sign
EXACT_ZERO = 128
NONZERO_AT_ZERO = 256
SIGN_CHANGE = 512
FLUSHED = 1024  # zero where the correctly rounded value is a nonzero subnormal
OVERFLOW = 2048  # an infinity where the exact value rounds to a finite number
STRAY_NAN = 4096  # NaN where the exact value is finite: allowed only where the bound is infinite

COUNTED = {
    "compared": COMPARED,
    "faithful": FAITHFUL,
    "undecided": UNDECIDED,
    "special_value_mismatches": SPECIAL_MISMATCH,
    "signed_zero_mismatches": SIGNED_ZERO,
    "nonzero_at_zero": NONZERO_AT_ZERO,
    "exact_zeros": EXACT_ZERO,
    "sign_changes": SIGN_CHANGE,
    "flushed_subnormals": FLUSHED,
    "overflows": OVERFLOW,
    "expected_specials": EXPECTED_SPECIAL,
}
"""The counts of a record that are a count of one flag each."""
