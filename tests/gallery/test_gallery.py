"""Every entry of the gallery: the tool's answer is the expected one, the numbers print as the
thread shows them, and the figures in the texts are computed again."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_helpers import said

from refkernels import gallery
from refkernels.cli.gallery import page_of
from refkernels.diagnosis.explanation import Explanation
from refkernels.diagnosis.summation import known, replay
from refkernels.gallery.entry import Entry, EntryError, parse
from refkernels.records.array_files import load_npz
from refkernels.reporting.gallery import gallery_page

NAMES = ("dweight", "dbias")
each = pytest.mark.parametrize("name", gallery.names())


@pytest.fixture(autouse=True)
def explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each entry is explained once."""
    monkeypatch.setattr(Entry, "explain", lambda entry: explained(entry.name))


EXPLAIN = Entry.explain


@functools.cache
def explained(name: str) -> Explanation:
    return EXPLAIN(gallery.load(name))


def answer(entry: Entry, kernel: str) -> np.ndarray:
    (array,) = entry.outputs[kernel].values()
    return array


def gap(entry: Entry) -> np.ndarray:
    first, second = (answer(entry, kernel).astype(np.float64) for kernel in entry.outputs)
    return np.abs(first - second)


def refkernels_says(*arguments: str) -> Any:
    return said("gallery", *arguments)


def test_the_seeds_and_the_threads_are_there() -> None:
    sources = {gallery.load(name).source for name in gallery.names()}
    threads = ("Paddle/issues/35123", "oneflow/pull/6149", "Paddle/issues/54208")
    threads += ("onnxruntime/issues/28463", "pytorch/issues/51102", "jax/issues/23159")
    threads += ("pytorch/issues/176371", "Paddle/issues/34763", "Paddle/issues/71702")
    threads += ("oneflow/pull/5817", "Paddle/pull/78265", "昇腾上的Cosine误差")
    for thread in threads:
        assert any(thread in source for source in sources), thread


@each
def test_all_prose_of_an_entry_is_in_chinese_with_the_same_figures(name: str) -> None:
    entry = gallery.load(name).to_dict()
    prose = ["title", "reported", "thread", "argument", "provenance", "device"]
    for field in [part for part in prose if entry[part]]:
        english, chinese = (re.findall(r"\d[\d.,]*\d|\d", text) for text in (
            entry[field], entry["zh"][field]))  # fmt: skip
        assert set(english) <= set(chinese) or field in ("argument", "provenance"), field
    page = gallery_page(entry, "", "zh")
    body = re.sub(r"`[^`]*`|https?:\S+", "", page)
    for line in filter(None, body.splitlines()):
        assert re.search(r"[\u4e00-\u9fff]", line) or not re.search(r"[A-Za-z]{4} [a-z]{2}", line)


@each
def test_the_tool_says_what_the_entry_expects(name: str) -> None:
    entry = gallery.load(name)
    explanation = entry.explain()
    findings: dict[str, Any] = {
        kernel: {"verdict": explained_kernel.verdict, "cause": explained_kernel.cause}
        for kernel, explained_kernel in explanation.kernels.items()
    }
    findings |= {
        f"{a} | {b}": {"cause": difference.cause}
        for (a, b), difference in explanation.differences.items()
    }
    assert findings == entry.expected
    for lang in ("en", "zh"):
        assert explanation.to_markdown(lang).strip() in page_of(entry, explanation, lang)


@each
def test_large_arrays_stand_in_the_npz_and_nothing_else_does(name: str) -> None:
    folder = Path(gallery.__file__).parent / "entries"
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    kernels = record["outputs"].items()
    by_place = {
        f"output.{kernel}.{key}": array for kernel, by in kernels for key, array in by.items()
    }
    if "case" not in record["inputs"]:
        by_place |= {f"input.{key}": array for key, array in record["inputs"].items()}
    spelled = [array["values"] for array in by_place.values() if "values" in array]
    assert all(np.array(values, dtype=object).size <= 24 for values in spelled)
    referred = {place for place, array in by_place.items() if array == "npz"}
    stored = load_npz(folder / f"{name}.npz") if referred else {}
    assert stored.keys() == referred
    assert (folder / f"{name}.npz").exists() == bool(referred)


@each
def test_the_numbers_print_as_the_thread_shows_them(name: str) -> None:
    entry = gallery.load(name)
    for kernel, outputs in entry.printed.items():
        for output, text in outputs.items():
            values = entry.outputs[kernel][output].reshape(-1)
            shown = text.split()
            assert len(shown) == values.size
            for value, digits in zip(values, shown, strict=True):
                assert printed(value, digits) == float(digits) or np.isnan(value)
                assert np.isnan(value) == (digits == "nan")


def printed(value: np.floating[Any], digits: str) -> float:
    """The float32 in as many significant digits as the thread shows."""
    mantissa = digits.lstrip("-").split("e")[0].replace(".", "").lstrip("0")
    return float(f"{float(value):.{max(len(mantissa), 1) - 1}e}")


@each
def test_every_entry_says_where_it_is_from_and_argues_a_disagreement(name: str) -> None:
    entry = gallery.load(name)
    for text in (entry.title, entry.source, entry.reported, entry.provenance, entry.thread):
        assert text
    json.dumps(entry.to_dict(), allow_nan=False)


def test_the_einsum_has_the_three_figures_of_its_thread() -> None:
    entry = gallery.load("einsum-bf16")
    x = np.arange(40).reshape(4, 1, 10)
    y = np.arange(320).reshape(8, 10, 4)
    right = np.einsum("btd,adr->brta", x, y)  # whole numbers: exact
    rows = entry.outputs["jax on TPU"]["c"].reshape(4, 1, 8, 4)
    got = rows.transpose(0, 3, 1, 2).astype(np.float64)
    error = np.abs(got - right)
    assert np.count_nonzero(error) == 16
    assert error.max() == 345
    assert f"{(error / right).max():.8f}" == "0.00333382"


def test_the_batched_product_has_the_difference_of_its_thread() -> None:
    assert gap(gallery.load("matmul-one-ulp")).max() == 2.384185791015625e-07


def test_the_batched_product_s_answers_are_one_order_without_and_with_fma() -> None:
    entry = gallery.load("matmul-one-ulp")
    a, b = entry.inputs["a"], entry.inputs["b"]
    for kernel, fma in (("torch", False), ("tensorflow", True)):
        order = known.sequential(5, fma=fma)
        again = [replay(order, left, right) for left, right in zip(a, b, strict=True)]
        assert np.array_equal(np.stack(again), answer(entry, kernel)), kernel


def test_linear_has_the_differences_of_its_thread() -> None:
    assert f"{gap(gallery.load('linear-with-bias')).max():.8f}" == "0.00012207"
    assert gap(gallery.load("linear-without-bias")).max() == 0.0


def test_tf32_linear_has_the_difference_of_its_thread() -> None:
    entry = gallery.load("linear-tf32")
    x, weight = (entry.inputs[key].astype(np.float64) for key in ("x", "weight"))
    error = np.abs(answer(entry, "RTX 3090") - x @ weight.T)
    assert f"{error.max():.4f}" == "0.0012"


@pytest.mark.parametrize(("name", "share"), [("sine", "10.0 %"), ("cosine", "31.1 %")])
def test_two_libraries_differ_as_reported(name: str, share: str) -> None:
    entry = gallery.load(f"{name}-two-libraries")
    apart = gap(entry)
    assert f"{np.mean(apart > 0):.1%}".replace("%", " %") == share
    assert share in entry.provenance
    assert f"{apart.max():.3g}" == "5.96e-08"


def test_the_large_mean_s_row_has_the_thread_s_right_answer() -> None:
    entry = gallery.load("layernorm-large-mean")
    x = entry.inputs["x"].astype(np.float64)
    right = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    assert right[0] == pytest.approx([0.1249, 0.4133, -1.6235, 1.0852], abs=2e-4)


def test_clipped_gradients_are_shown_with_their_norms() -> None:
    entry = gallery.load("clip-grad-groups")
    explanation = entry.explain()
    dy, x = entry.inputs["dy"].astype(np.float64), entry.inputs["x"].astype(np.float64)
    norms = np.linalg.norm(dy.T @ x), np.linalg.norm(dy)
    together = "1 / the norm of dweight and dbias together", 1 / np.hypot(*norms)
    own = [(f"1 / the norm of {name}", 1 / norm) for name, norm in zip(NAMES, norms, strict=True)]
    for kernel, factors in zip(entry.outputs, ([together, together], own), strict=True):
        for output, (name, factor) in zip(NAMES, factors, strict=True):
            found = explanation.kernels[kernel].candidates
            (candidate,) = [c for c in found if (c.output, c.cause) == (output, "scale_factor")]
            assert candidate.details["named"] == name
            assert float(candidate.details["factor"]) == pytest.approx(factor, rel=2e-7)
    assert [f"{1 / factor:.5g}" for _, factor in (together, *own)] == ["1328.5", "1326.7", "69.443"]
    assert f"{own[1][1] / together[1]:.0f}" == "19"
    ((_, apart),) = explanation.differences.items()
    assert apart.details["factor"].startswith("0.00075272")


def test_the_command_lists_all_and_prints_one() -> None:
    listed, page = refkernels_says(), refkernels_says("cosine-at-pi")
    assert (listed.exit_code, page.exit_code) == (0, 0)
    assert all(name in listed.stdout for name in gallery.names())
    assert page.stdout.startswith("# cos(pi) = -1.000004")
    assert "## 数值说明了什么" in refkernels_says("cosine-at-pi", "--lang", "zh").stdout
    record = json.loads(refkernels_says("matmul-tf32", "--json").stdout)
    assert record["explanation"]["kernels"]["paddle on GPU"]["cause"] == "tf32_inputs"


def test_a_page_in_chinese_has_the_entry_s_chinese_words() -> None:
    entry = gallery.load("gelu-tanh-factored").to_dict()
    page = gallery_page(entry, "", "zh")
    assert page.startswith("# Megatron 的 GELU 是另一种近似吗？")
    keys = ("reported", "thread", "argument", "source", "provenance", "device")
    assert all(entry["zh"][key] in page for key in keys)
    assert "Rebuilt" not in page
    assert "any" not in page.split()
    assert entry["reported"] in gallery_page(entry, "")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_address_of_a_thread_is_a_link(lang: str) -> None:
    entry = gallery.load("layernorm-nan").to_dict()
    entry["source"] = entry["zh"]["source"] = "https://example.org/1 and https://example.org/2"
    page = gallery_page(entry, "", lang)
    assert "<https://example.org/1> and <https://example.org/2>\n" in page


def test_the_command_refuses_what_it_does_not_know() -> None:
    unknown = refkernels_says("nothing")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert f"no entry 'nothing': the nearest of {len(gallery.names())} are " in unknown.stderr
    assert refkernels_says("acos-at-one", "--lang", "fr").exit_code == 2


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"inputs": {}, "outputs": {}},
        {"inputs": {"x": {"values": [1]}}, "outputs": {}},
        {"inputs": {"x": "npz"}, "outputs": {}},
        {"inputs": {"case": "sin/nothing[seed=0]"}, "outputs": {}},
    ],
)
def test_a_file_that_is_not_an_entry_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(EntryError, match=r"is not an entry|no longer a case"):
        parse("nameless", told)
