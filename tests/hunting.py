"""How far tests search: a run draws a few examples of each kind, and `make hunt` many more.

REFKERNELS_HUNT=10 multiplies their number by 10.
"""

import os

HUNT = int(os.environ.get("REFKERNELS_HUNT", "1"))
EXAMPLES = 30 * HUNT  # Hypothesis's, where a test does not say how many
