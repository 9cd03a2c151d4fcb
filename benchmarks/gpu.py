"""torch on a GPU, beside its CPU, against the oracles: TF32 off and on, all ops; then the sweeps.

    make gpu                                 where `refkernels env list` shows a torch with CUDA
    make gpu TORCH=/path/to/its/python       (remembered, as `refkernels env add torch` does)
    make gpu SWEEPS=1                        the sweeps alone, for a GPU of a few minutes
    python benchmarks/gpu.py --device cpu    a rehearsal without a GPU
    python benchmarks/gpu.py --out FOLDER --dry-run    what is missing there; needs no GPU

The folder is named after the device, such as benchmarks/results/nvidia-h200, and keeps records and
tables. It may be stopped at any moment: the same command continues. A finished measurement and the
functions that are swept are not asked again, even by another version of torch.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from kept_sweeps import KeptSweeps, Missing

from refkernels import registry
from refkernels.cli.shared import pages
from refkernels.frameworks import addition
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.gateway import Session
from refkernels.records.files import exists, stored
from refkernels.records.journal import JournalError
from refkernels.reporting.reading import RecordsError, read_records
from refkernels.runs.measurement.journal import MeasurementJournal
from refkernels.runs.sweeps import PoolError
from refkernels.runs.sweeps.journal import RECORDS

RESULTS = Path(__file__).parent / "results"
TF32 = ("allow_tf32=0,cudnn_allow_tf32=0", "allow_tf32=1,cudnn_allow_tf32=1")
DTYPES = ("float16", "bfloat16", "float32")
CURE = "name a Python whose torch has CUDA: make gpu TORCH=/path/to/python"
STOPPED = "Stopped; finished work is kept: the same command continues."
_PATIENCE = 20.0  # seconds that a stopped command has to say what is kept


class Refused(Exception):
    """There is no such device, or nothing to ask it; the message is one sentence with the cure."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, as `timeout 5m make gpu` sends it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--python", help="an interpreter that has torch with CUDA")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ...; cpu rehearses")
    parser.add_argument("--out", type=Path, help="the folder (default: named after the device)")
    parser.add_argument("--op", action="append", default=[], help="all by default; repeatable")
    parser.add_argument("--range", help="of the sweeps, such as 1:2; all numbers by default")
    parser.add_argument("--sweeps", action="store_true", help="the sweeps alone")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be asked")
    arguments, passed_on = parser.parse_known_args()
    try:
        return run(arguments, passed_on)
    except (Refused, FrameworkError, JournalError, PoolError, RecordsError, ValueError) as error:
        print(f"make gpu: {str(error).rstrip('.')}.", file=sys.stderr)
        return 2


def run(arguments: argparse.Namespace, passed_on: list[str]) -> int:
    ops = [registry.get(op).name for op in arguments.op]
    functions = sorted(n for n, op in registry.ops().items() if op.function and not op.params)
    swept = [op for op in functions if op in ops or not ops]
    if arguments.sweeps and passed_on:
        raise Refused(f"{passed_on[0]} is an option of the measurement, which --sweeps leaves out")
    if arguments.sweeps and not swept:
        raise Refused(f"none of {', '.join(ops)} can be swept: choose from {', '.join(functions)}")
    if arguments.dry_run and arguments.out is None:
        raise Refused(
            "--dry-run asks no device, whose name the folder would have: add --out FOLDER"
        )
    device, version, out = arguments.device, "", arguments.out
    if not arguments.dry_run:
        if arguments.python:
            addition.add("torch", arguments.python)
        device, name, version = found(device)
        out = out or RESULTS / slug(name)
        refuse_another_device(out, device, name)
    kept = KeptSweeps(out)
    missing = kept.missing(swept, DTYPES, device, arguments.range, version)
    done = "" if arguments.sweeps else finished(out, ops)
    if done and passed_on:
        raise Refused(
            f"{passed_on[0]} is an option of the measurement, which is finished in {out}: choose "
            "another --out"
        )
    asked = "left out" if arguments.sweeps else f"asked: {', '.join(ops) or 'all ops'}"
    print(f"Measurement: {done or asked}.")
    print(outlook(kept, swept, missing, version), flush=True)
    if arguments.dry_run:
        return 0
    status = 0
    if not (arguments.sweeps or done):
        status = measure(ops, device, out, passed_on)
        if status not in (0, 1):  # 1: the report has a fault
            return status
    if missing:
        status = max(status, not kept.sweep(missing, device, version, arguments.range))
        print("The device is no longer needed; the pages are written.", file=sys.stderr, flush=True)
    if swept and not written(out):
        pages.show_swept(out)
    return status


def found(wanted: str) -> tuple[str, str, str]:
    """The wanted device of torch, its description, and torch's version. Raises Refused."""
    with Session("torch") as session:
        if session.status != "ok":
            raise Refused(f"{session.reason}; or {CURE}")
        environment = session.info["environment"]
        for device, text in zip(session.info["devices"], environment["devices"], strict=True):
            if wanted in (device, device.split(":")[0]):
                name = f"cpu {environment['cpu']}" if device == "cpu" else text
                return device, name, session.info["version"]
        devices = ", ".join(session.info["devices"])
        raise Refused(
            f"torch {session.info['version']} in {environment['executable']} has no {wanted}, only "
            f"{devices}; {CURE}"
        )


def refuse_another_device(out: Path, device: str, name: str) -> None:
    """Raise Refused if the folder's sweeps are of another device of the same place."""
    if device == "cpu":
        return
    for record in KeptSweeps(out).records:
        for other in record["devices"] if record["kind"] == "environment" else ():
            if other.startswith(f"{device} (") and other != name:
                raise Refused(
                    f"{out} holds sweeps on {other}, and this is {name}: choose another --out"
                )


def finished(out: Path, ops: list[str]) -> str:
    """What is said of the finished measurement in a folder; "" where it is not there, or stopped.
    Raises Refused if it lacks one of these ops."""
    words = MeasurementJournal.words
    if not exists(out / words.records) or (out / words.journal).exists():
        return ""
    records = read_records(out / words.records)
    versions = sorted({str(r["version"]) for r in records if r["kind"] == "environment"})
    measured = {record["op"] for record in records if record["kind"] == "measurement"}
    lacking = [op for op in ops or registry.ops() if op not in measured]
    by = f"by torch {', '.join(versions)}"
    if lacking and ops:
        raise Refused(
            f"{out} holds a finished measurement {by} without {', '.join(lacking)}: choose another "
            "--out, or add --sweeps for the sweeps alone"
        )
    without = f", without {', '.join(lacking)}" if lacking else ""
    return (
        f"a finished one {by} is kept{without}; another --out measures anew, with today's torch "
        "and cases"
    )


def outlook(kept: KeptSweeps, swept: list[str], missing: Missing, version: str) -> str:
    """What is said of the sweeps: those that are kept, and those that torch's version is asked."""
    done = [op for op in swept if op not in missing]
    versions = sorted({str(r["version"]) for r in kept.sweeps if r["op"] in done})
    by = f" by torch {', '.join(versions)}" if versions else ""
    asked = f"asked of torch {version}" if version else "asked"
    rest = f"{asked}: {', '.join(missing)}" if missing else "nothing is asked"
    return f"Sweeps: {len(done)} of {len(swept)} functions are there{by}; {rest}."


def written(out: Path) -> bool:
    """Whether the sweeps' page is there and is not older than their records: a stop may come
    between the two."""
    page, records = out / "sweep.html", stored(out / RECORDS)
    return page.exists() and page.stat().st_mtime_ns >= records.stat().st_mtime_ns


def measure(ops: list[str], device: str, out: Path, passed_on: list[str]) -> int:
    names = [f"torch@{tf32}:{device}" for tf32 in TF32] + ["torch:cpu"] * (device != "cpu")
    targets = [word for name in names for word in ("--framework", name)]
    chosen = [word for op in ops for word in ("--op", op)]
    return refkernels(
        "measure", "--full", *targets, *chosen, "--out", str(out), "--resume", *passed_on
    )


def slug(text: str) -> str:
    """`cuda:0 (NVIDIA H200)` is nvidia-h200."""
    inside = re.search(r"\((.+)\)$", text)
    return "-".join(re.findall(r"[a-z0-9]+", (inside[1] if inside else text).lower()))


def refkernels(*words: str) -> int:
    """The status of the command. If this process is stopped, so is the command."""
    with subprocess.Popen([sys.executable, "-m", "refkernels", *words]) as process:
        try:
            return process.wait()
        except KeyboardInterrupt as stop:
            if isinstance(stop, Terminated):  # Ctrl-C has reached the command as well
                process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            raise
        finally:
            if process.poll() is None:
                process.terminate()


def terminate(*_: object) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminate)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        sys.exit(130)
