"""Records come back as written; a faulty file gives one sentence with the line."""

import json
import math

import pytest
import synthetic

import refkernels
from refkernels.records import schema
from refkernels.records.files import compress
from refkernels.reporting import RecordsError, read_records

GOOD = json.dumps(synthetic.environment("torch"))


def _fault(tmp_path, text):
    path = tmp_path / "records.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RecordsError) as caught:
        read_records(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_non_finite_numbers_are_decoded_and_text_is_not(tmp_path):
    record = synthetic.sine()
    record["ulp"]["max"] = math.inf
    record["bound"]["max_ratio"] = -math.inf
    record["plain"]["ratio"] = math.nan
    record["worst"]["got"]["decimal"] = "nan"
    folder = synthetic.write(tmp_path, [record])
    (got,) = read_records(folder / "records.jsonl")
    assert got["ulp"]["max"] == math.inf
    assert got["bound"]["max_ratio"] == -math.inf
    assert math.isnan(got["plain"]["ratio"])
    assert got["worst"]["got"]["decimal"] == "nan"


def test_a_line_that_is_cut_off_is_named_with_its_cure(tmp_path):
    message = _fault(tmp_path, f"{GOOD}\n{GOOD[:40]}")
    assert "line 2" in message
    assert "--resume" in message


@pytest.mark.parametrize("between", [0, 300])
def test_the_first_faulty_line_is_named_whatever_its_fault(tmp_path, between):
    good = (GOOD + "\n") * between
    unreadable, invalid = "{not json\n", '{"schema": 1, "kind": "measurement"}\n'
    assert "line 2: not valid" in _fault(tmp_path, f"{GOOD}\n{unreadable}{good}{invalid}")
    assert "line 2: in a record" in _fault(tmp_path, f"{GOOD}\n{invalid}{good}{unreadable}")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{not json", "not valid JSON"),
        ("[1, 2]", "an array"),
        ('{"schema": 1, "kind": "environment", "framework": NaN}', "NaN"),
        ('{"schema": 7, "kind": "environment"}', "schema 7"),
        ('{"a": 1}', "schema None"),
        ('{"schema": 1}', "no kind"),
        (f'{{"schema": 1, "kind": "song", "a": {"[" * 900}"inf"{"]" * 900}}}', "nested too deeply"),
        ('{"schema": 1, "kind": "measurement", "direction": "forward"}', "'op'"),
    ],
)
def test_a_faulty_line_is_named(tmp_path, line, words):
    message = _fault(tmp_path, f"{GOOD}\n\n{line}\n{GOOD}\n")
    assert "line 3" in message
    assert words in message


def test_bytes_that_are_not_text_are_named(tmp_path):
    assert "line 2: not UTF-8" in _fault(tmp_path, GOOD.encode() + b"\n\xff\xfe\n")


def test_a_name_that_no_file_can_have_and_a_folder_are_refused_in_a_sentence(tmp_path):
    for path, reason in ((tmp_path / ("x" * 5000), "too long"), (tmp_path, "directory")):
        with pytest.raises(RecordsError, match=rf"cannot be read \(.*{reason}\)") as caught:
            read_records(path)
        assert len(str(caught.value)) < 500
    with pytest.raises(RecordsError, match="does not exist") as caught:
        read_records(tmp_path / "two\nlines")
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_what_to_give(tmp_path):
    with pytest.raises(RecordsError, match="--out"):
        read_records(tmp_path / "records.jsonl")


def test_compressed_records_are_read_as_they_were(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(GOOD + "\n")
    before = read_records(path)
    packed = compress(path)
    assert not path.exists()
    assert read_records(path) == read_records(packed) == before
    assert list(refkernels.load_records(tmp_path)) == before
    content = packed.read_bytes()
    path.write_text(GOOD + "\n")
    assert compress(path).read_bytes() == content
    for damaged in (content[:-9], content[:20] + b"\xff" * 20 + content[40:], b"no gzip"):
        packed.write_bytes(damaged)
        with pytest.raises(RecordsError, match=r"records.jsonl.gz is cut off or damaged"):
            read_records(path)
    path.write_text(GOOD + "\n")
    assert read_records(path) == before  # what is not compressed counts


def test_an_ok_measurement_without_a_verdict_is_refused(tmp_path):
    record = synthetic.sine()
    del record["verdict"]
    assert "'verdict' must be a text" in _fault(tmp_path, json.dumps(record) + "\n")


COMMON = {
    "evidence": {
        "cause": "eps_differs", "bits": 41.5, "units": 32, "confidence": "proven", "needed": None,
        "survivors": ["eps_differs", "scale_factor"],
    },
    "form": "nan",
    "state": "running_mean",
    "step": 0,
    "rank": 7,
    "layer": "encoder.layers.3.norm1",
    "emulated": "qemu-aarch64 7.2",
}  # fmt: skip
WRONG = {
    "evidence": [[], {"cause": "eps_differs"}, {"cause": "a", "bits": "many", "units": 1},
                 {"cause": "a", "bits": 1.0, "units": 1, "confidence": "sure"}],
    "form": [7, ""],
    "state": [["running_mean"]],
    "step": [-1, 1.5, True],
    "rank": ["0"],
    "layer": [3],
    "emulated": [True],
}  # fmt: skip


def kinds():
    """A record of each kind that may have the common fields."""
    return {
        "measurement": synthetic.sine(),
        "agreement": synthetic.agreement(
            "sin", "forward", "y", "float32", "a case", "torch", "paddle", 0.5, 1e-7, 2
        ),
        "invariance": synthetic.invariance("sin", "torch", "float32", "batch", True),
    }


def test_every_common_field_has_a_meaning_and_is_tested():
    common = schema.DOCUMENT["$defs"]["common"]["properties"]
    assert set(common) == set(COMMON) == set(WRONG)
    assert all(field["description"].endswith(".") for field in common.values())


@pytest.mark.parametrize("kind", kinds())
def test_common_fields_come_back_and_may_be_absent_or_null(tmp_path, kind):
    for number, more in enumerate(({}, dict.fromkeys(COMMON), COMMON)):
        folder = synthetic.write(tmp_path / str(number), [{**kinds()[kind], **more}])
        (got,) = read_records(folder / "records.jsonl")
        assert {name: got[name] for name in more} == more


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values])
def test_a_common_field_of_another_type_is_refused(tmp_path, name, value):
    for kind, record in kinds().items():
        message = _fault(tmp_path, json.dumps({**record, name: value}) + "\n")
        assert f"'{name}" in message
        assert kind in message
