"""The schema of records as JSON Schema: the same rules as those that a reader checks, the file that
docs/ holds, and the records that are kept."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import mutations
import numpy as np
import pytest
import test_sweep_pages as sweep_pages
from command_helpers import said
from hunting import HUNT
from test_fuzz_records import MEASURED

import refkernels
from refkernels.records import codec, schema
from refkernels.records.words import SCHEMA

ROOT = Path(__file__).parent.parent.parent
OLD = Path(__file__).parent / "data"
KEPT = sorted((ROOT / "benchmarks" / "results").glob("*/*s.jsonl.gz"))
DOCUMENT = schema.DOCUMENT
# To JSON Schema 2.0 is an integer; a count that was computed as a float is none to us.
TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: type(value) is int
)
Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=TYPES)
VALIDATOR = Validator(DOCUMENT)


def lines(path: Path, step: int = 1) -> Iterator[Any]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number % step == 0:
                yield json.loads(line)


def test_the_schema_is_a_json_schema_and_states_its_version() -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    assert DOCUMENT["$id"].endswith(f":{SCHEMA}")
    assert DOCUMENT["properties"]["schema"] == {"const": SCHEMA}


def test_the_command_prints_what_docs_hold() -> None:
    printed = said("schema")
    kept = (ROOT / "docs" / "records.schema.json").read_text(encoding="utf-8")
    assert printed.output == kept, "refkernels schema > docs/records.schema.json"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_kept_records_are_valid(path: Path) -> None:
    checked = 0
    for record in lines(path, 4 if path.name.startswith("sweeps") else 20):
        VALIDATOR.validate(record)
        checked += 1
    assert checked > 10


def test_the_schema_refuses_what_a_reader_refuses() -> None:
    random = np.random.default_rng(20261122)
    explained = {
        "schema": 1, "kind": "explanation", "op": "sin", "direction": "forward", "case": "sin/x",
        "framework": "torch", "dtype": "float32", "status": "ok", "cause": "flushed",
        "details": {"ratio": 0.5}, "evidence": {"cause": "flushed", "bits": 44.5, "units": 9},
    }  # fmt: skip
    records = [*MEASURED, *sweep_pages.RECORDS, explained, {"schema": 1, "kind": "song"}]
    counts: Counter[bool] = Counter()
    batch: list[dict] = []
    for number in range(250 * HUNT):
        record = mutations.mutated(records[number % len(records)], random)
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
            continue
        try:
            read = codec.restored(codec.loads(json.dumps(record)), schema.TEXTS)
        except ValueError:
            continue
        complaint = schema.complaint(read)
        assert schema.valid([read]) == (complaint is None), complaint
        batch.append(read)
        valid = VALIDATOR.is_valid({**record, "schema": SCHEMA})
        assert valid == (complaint is None or "exceed" in complaint), (record["kind"], complaint)
        counts[valid] += 1
    assert min(counts[True], counts[False]) > 30, counts
    right = [read for read in batch if schema.complaint(read) is None]
    assert schema.valid(right)
    for wrong in (read for read in batch if schema.complaint(read) is not None):
        assert not schema.valid([*right[:7], wrong, *right[7:20]])


def test_records_of_every_schema_that_ever_was_are_read() -> None:
    """schema-N.jsonl are lines of a run from the day when schema N began; they never change."""
    files = sorted(OLD.glob("schema-*.jsonl"))
    assert [file.stem for file in files] == [f"schema-{number}" for number in range(1, SCHEMA + 1)]
    for file in files:
        records = refkernels.load_records(file)
        assert set(records.kinds) == {"environment", "measurement", "agreement", "invariance"}
        assert len(records.to_frame()) == records.kinds["measurement"] > 5
        assert {record["status"] for record in records.of()} == {"ok", "unsupported"}
