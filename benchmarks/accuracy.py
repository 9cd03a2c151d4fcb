"""All frameworks, all ops, all cases, measured; records and report are kept.

    python benchmarks/accuracy.py [--out benchmarks/results/NAME]

Takes half an hour on two cores. Without --out the folder is named after the machine, such as
benchmarks/results/cpu-x86_64-linux. A stopped run resumes. Of a finished one records.jsonl.gz is
kept, with what `kept_records` leaves of the records; every command reads it.
"""

import argparse
import platform
import subprocess
import sys
from pathlib import Path

from kept_records import keep

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run `refkernels measure` into the results folder and keep what pages show; the exit status is
    that of `measure`."""
    name = f"cpu-{platform.machine()}-{platform.system()}".lower()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / name)
    arguments, measure_options = parser.parse_known_args()
    command = ["measure", "--full", "--out", str(arguments.out), "--resume", *measure_options]
    status = subprocess.call([sys.executable, "-m", "refkernels", *command])
    records = arguments.out / "records.jsonl"
    if status in (0, 1) and records.exists():  # finished; 1: the report shows a fault
        keep(arguments.out)
    return status


if __name__ == "__main__":
    sys.exit(main())
