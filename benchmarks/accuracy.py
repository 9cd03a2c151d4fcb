"""All frameworks, all ops, all cases, measured; records and report are kept.

    python benchmarks/accuracy.py [--out benchmarks/results/NAME]

Takes three to four minutes on two cores. Without --out the folder is named after the machine:
benchmarks/results/cpu-x86_64-linux, say. A stopped run resumes.
"""

import argparse
import platform
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run `refkernels measure` into the results folder and return its exit status."""
    name = f"cpu-{platform.machine()}-{platform.system()}".lower()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / name)
    arguments, passed_on = parser.parse_known_args()
    command = ["measure", "--full", "--out", str(arguments.out), "--resume", *passed_on]
    return subprocess.call([sys.executable, "-m", "refkernels", *command])


if __name__ == "__main__":
    sys.exit(main())
