"""The benchmarks are scripts beside one another, in a folder of their own."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))
