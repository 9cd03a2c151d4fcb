"""What `refkernels align RUN` costs for a captured run, in seconds and memory.

    python benchmarks/align_cost.py RUN [--out FILE]

`benchmarks/capture_overhead.py --keep RUN` makes RUN: BERT-small, one captured step. Seconds are
processor time, which other processes do not lengthen.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

from refkernels.alignment import align
from refkernels.records.files import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    began, wall = time.process_time(), time.perf_counter()
    alignment = align(arguments.run, steps=[0])
    record = {
        "cpu_s": time.process_time() - began,
        "wall_s": time.perf_counter() - wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "captured_mib": sum(file.stat().st_size for file in arguments.run.rglob("*.safetensors"))
        / 2**20,
        "judged": len(alignment.local[0].judgements),
        "unjudged": len(alignment.local[0].unjudged),
        "verdict": alignment.verdict.word,
    }
    print(json.dumps(record, indent=1))
    if arguments.out:
        write_whole(arguments.out, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
