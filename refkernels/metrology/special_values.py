"""The rules for special values: an element's flags, besides or instead of its ULP error.

Every element gets a set of flags. The rules, in order:
- An infinite radius encloses nothing: the element is uncertified, and no answer to it is wrong.
- Any NaN equals any NaN; a NaN on one side only is a mismatch, never a number.
- Where the mathematics gives an infinity (1/0, inf + 1), only that infinity is right.
- A nonzero answer to an exact zero is counted separately, outside the ULP statistics: in units of
  the smallest subnormal, one such element would drown all others.
- The sign of an exact zero is counted separately: the real number 0 has none.
- Where the exact value rounds to a finite number, an infinity counts as 2^(emax + 1); where it
  rounds to infinity, infinity is right.
- Sign changes and flushed subnormals are numbers like any other, and are flagged.
"""

COMPARED = 1  # has an ULP error
CORRECT = 2  # the bits of the certified rounding; the sign of an exact zero is not counted
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
UNCERTIFIED = 8192  # the radius is infinite, so nothing is known of the exact value

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
    "uncertified": UNCERTIFIED,
}
"""The counts of a record that count one flag each."""
