"""Records as data: loaded, chosen, as a frame and as Parquet."""

import gzip
import math
import sys
from pathlib import Path

import pandas
import pytest

import refkernels
from refkernels.reporting.frames import Records

KEPT = Path(__file__).parent.parent.parent / "benchmarks" / "results" / "cpu-x86_64-linux"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    folder = tmp_path_factory.mktemp("run")
    with gzip.open(KEPT / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        few = [line for number, line in enumerate(lines) if number < 5 or number % 50 == 0]
    (folder / "records.jsonl").write_text("".join(few), encoding="utf-8")
    return refkernels.load_records(folder)


def test_every_record_of_the_folder_is_there(records: Records) -> None:
    assert len(records) == sum(records.kinds.values()) > 300
    assert records.kinds["environment"] == 5
    assert "of kind measurement" in repr(records)


def test_records_are_chosen_by_their_fields(records: Records) -> None:
    chosen = records.of(op="layernorm", dtype="float32")
    assert len(chosen) > 0
    assert {(record["kind"], record["op"], record["dtype"]) for record in chosen} == {
        ("measurement", "layernorm", "float32")
    }


def test_a_frame_has_the_records_figures(records: Records) -> None:
    frame = records.to_frame()
    measurements = records.of("measurement")
    assert len(frame) == len(measurements)
    compared = 0
    for place, record in enumerate(measurements):
        if record.get("ulp") is not None:
            largest = frame["ulp.max"][place]
            assert largest == record["ulp"]["max"] or math.isnan(largest)
            compared += 1
    assert compared > 100
    assert set(frame["case.name"]) == {record["case"]["name"] for record in measurements}


def test_parquet_holds_the_frame(records: Records, tmp_path: Path) -> None:
    path = records.to_parquet(tmp_path / "run.parquet")
    back = pandas.read_parquet(path)
    assert list(back.columns) == list(records.to_frame().columns)
    assert len(back) == len(records.of("measurement"))


def test_what_is_not_installed_is_named(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        records.to_frame()


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no records: give the folder"):
        refkernels.load_records(tmp_path)
