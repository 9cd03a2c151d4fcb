"""Makes the helpers beside these tests importable, and the truth of all functions."""

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "elementwise"):
    sys.path.insert(0, str(folder))
