"""Which calls cost accuracy: the op that was made worse on purpose comes first, what a wider format
buys is what it buys, and the trace changes no bit. In torch's own interpreter."""

import functools
import json
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_helpers import refused, said
from plain_interpreter import PlainInterpreter, in_one_process
from presence import interpreter_of

from refkernels.profiling import program as programs
from refkernels.profiling.program import Profile, of_file

pytestmark = pytest.mark.framework
PROGRAMS = Path(__file__).with_name("traced_programs.py")
PLANTED = [
    number
    for number, line in enumerate(PROGRAMS.read_text(encoding="utf-8").splitlines(), start=1)
    if "# the planted line" in line
]


@pytest.fixture(scope="module")
def in_torch(plain: Callable[..., PlainInterpreter]) -> Callable[[str], str]:
    """What a script prints in torch's interpreter, with this package and what it needs. One process
    runs all programs: the import takes longer than most of them."""
    places = [PROGRAMS.parent, Path(__file__).parents[2], sysconfig.get_path("purelib")]
    path = f"import sys\nsys.path += {[*map(str, places)]}\n"
    return lambda code: plain("torch", "profiles").run(path + code)


@pytest.fixture(scope="module", autouse=True)
def _torch(plain: Callable[..., PlainInterpreter]) -> Iterator[None]:
    interpreter_of("torch")
    with pytest.MonkeyPatch.context() as patch:
        one = in_one_process(lambda name: plain(name, "profiles"))
        patch.setattr(programs, "subprocess", one)
        yield


@functools.cache
def profiled(program: str) -> dict[str, Any]:
    return of_file(f"{PROGRAMS}:{program}").record


MODULES = {"llama": "2", "convolutions": "4", "bert": "", "truncated": "2", "attention": ""}


@pytest.mark.parametrize(("line", "program"), list(enumerate(MODULES)))
def test_the_op_that_was_made_worse_comes_first(line: int, program: str) -> None:
    """E[x^2] - E[x]^2 makes the rounding of E[x] weigh as much, two lines before."""
    record, module = profiled(program), MODULES[program]
    heaviest = record["modules"][:1]
    assert not module or (heaviest[0]["module"] == module and heaviest[0]["share"] > 0.9)
    first = record["sites"][: 2 if program == "convolutions" else 1]
    assert (PLANTED[line], module) in [(row["line"], row["module"]) for row in first]
    assert sum(row["share"] for row in first) > 0.9
    assert record["remainder"] < 0.01 or program == "bert"  # float8 is too coarse to be linear
    assert program != "convolutions" or max(p["accumulated"] for p in record["timeline"]) < 1e-3
    assert (record["unseen"], sum(r["share"] for r in record["sites"])) == ([], pytest.approx(1.0))


@pytest.mark.parametrize("program", ["llama", "convolutions", "truncated", "attention"])
def test_the_gain_is_that_of_the_mended_one(program: str, in_torch: Callable[[str], str]) -> None:
    """The program without its fault, and with it, against the same in float64."""
    code = f"""
import torch
from traced_programs import {program} as program
truth = program(False, torch.float64)
error = lambda fault: float((program(fault).double() - truth).square().mean().sqrt())
print(1 - error(False) / error(True))
"""
    mended = float(in_torch(code))
    first = (profiled(program)["modules"] or profiled(program)["sites"])[0]
    assert mended > 0.9
    assert first["gain"] == pytest.approx(mended, abs=0.03)


def test_the_trace_changes_no_bit_and_draws_no_number(in_torch: Callable[[str], str]) -> None:
    """Also on the fast path of a transformer, and in the gradients of what comes after it."""
    code = """
import torch, traced_programs as programs
from refkernels.profiling.in_torch import Trace
def results(name):
    y = getattr(programs, name)()
    return [y.detach().clone(), torch.rand(4)]
for name in ("llama", "convolutions", "bert", "fast_path", "experts", "attention"):
    plain = results(name)
    with Trace() as trace:
        traced = results(name)
    assert all(torch.equal(a, b) for a, b in zip(plain, traced)), name
    assert len(trace.calls) > 3
compiled = torch.compile(torch.nn.Linear(3, 3), backend="eager")
assert not trace.compiled
with Trace() as trace:
    compiled(torch.ones(2, 3))
assert trace.compiled
print("same")
"""
    assert in_torch(code).strip() == "same"


def test_a_block_is_profiled_in_its_place(tmp_path: Path, in_torch: Callable[[str], str]) -> None:
    code = f"""
import torch, refkernels
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Softmax(-1))
with refkernels.profile() as p:
    y = model(torch.randn(4, 8))
q = refkernels.profile(lambda x: (x * 3).sum(), torch.randn(5))
with refkernels.profile() as r:
    r.result(torch.randn(5).exp() - 1)
assert p.record["calls"] and q.record["calls"] and r.record["calls"]
assert refkernels.profile is not None and str(p).startswith("# Which calls")
print(*p.write({str(tmp_path / "here")!r}))
"""
    names = [Path(name).name for name in in_torch(code).split()]
    assert names == [
        "profile.md", "profile.zh.md", "profile.html", "profile.zh.html", "profile.json",
    ]  # fmt: skip
    assert "<svg" in (tmp_path / "here" / "profile.html").read_text(encoding="utf-8")


def test_decisions_that_float64_makes_otherwise_are_counted() -> None:
    (flipped,) = profiled("experts")["flipped"]
    assert flipped["call"].startswith("aten.topk")
    assert 0 < flipped["flipped"] < flipped["of"] == 512


def test_what_float64_cannot_go_through_is_told() -> None:
    """The fast path of a transformer is one call without a derivative."""
    profile = of_file(f"{PROGRAMS}:fast_path")
    assert profile.record["unseen"] == ["aten._transformer_encoder_layer_fwd.default"]
    assert "Not judged" in profile.markdown()
    assert "未能评判" in profile.markdown("zh")


def test_a_script_is_profiled_up_to_its_first_backward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, as users have it."""
    monkeypatch.setattr(programs, "subprocess", subprocess)
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\n"
        "model = torch.nn.Linear(4, 2)\n"
        "for step in range(int(sys.argv[1])):\n"
        "    loss = model(torch.randn(3, 4)).square().mean()\n"
        "    loss.backward()\n"
        "    raise SystemExit('it went on')\n"
    )
    done = said("profile", str(script), "7", "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert {row["line"] for row in record["sites"]} == {4}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("traced_programs.py:in_float64", "computes in float64"),
        ("traced_programs.py:nothing_seen", "No floating-point result"),
        ("traced_programs.py:missing", "has no function missing"),
        ("missing.py", "There is no file"),
        ("traced_programs.py", "without a call of backward"),
        ("traced_programs.py:LlamaBlock", "TypeError"),
    ],
)
def test_what_cannot_be_profiled_is_told_in_one_sentence(program: str, words: str) -> None:
    assert words in refused(said("profile", str(PROGRAMS.parent / program)))


def test_an_exact_program_has_nothing_to_tell() -> None:
    record = {
        "error": 0.0, "calls": 3, "compiled": True, "unseen": [], "remainder": 0.0, "modules": [],
        "sites": [{"share": 0.0, "gain": None}], "flipped": [], "overflowed": [],
    }  # fmt: skip
    page = Profile(record).markdown()
    assert "has the numbers of float64" in page
    assert "ran uncompiled" in page
