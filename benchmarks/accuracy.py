"""The main job as a benchmark: all frameworks, all ops, all cases; records and report are kept.

    python benchmarks/accuracy.py [--out benchmarks/results/NAME]

Takes three to four minutes on two cores. Without --out the folder is named after the machine:
benchmarks/results/cpu-x86_64-linux, say. A stopped run continues where it was.
"""

import argparse
import platform
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run `refkernels measure` into the results folder; its exit status is ours."""
    name = f"cpu-{platform.machine()}-{platform.system()}".lower()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / name)
    arguments, others = parser.parse_known_args()
    command = ["measure", "--full", "--out", str(arguments.out), "--resume", *others]
    return subprocess.call([sys.executable, "-m", "refkernels", *command])


if __name__ == "__main__":
    sys.exit(main())
