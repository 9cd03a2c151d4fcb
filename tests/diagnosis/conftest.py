"""The benchmark of planted faults is a script in a folder of its own."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))
