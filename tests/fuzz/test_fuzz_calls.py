"""Whatever its arguments, a public function raises only TypeError or ValueError, in a sentence.

Each call has arguments that fit, except for some. An error that the function's docstring names is
allowed. The sentence is this package's own: it comes from a `raise` here, not from inside NumPy or
Python, which do not know the caller's names. Besides, no call may change its arguments, the
floating-point mode or NumPy's error state, warn about its own arithmetic, or take ten seconds or a
gigabyte.
"""

import ast
import contextlib
import functools
import itertools
import resource
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import call_targets
import numpy as np
import pytest
from call_targets import TARGETS, arguments

import refkernels
from refkernels.arithmetic import mode
from refkernels.frameworks import environments
from refkernels.runs import sweeps
from refkernels.runs.sweeps import run

PACKAGE = Path(refkernels.__file__).parent
SECONDS, KILOBYTES = 10.0, 2**20  # a call takes less
MOST_BYTES = 8 * 2**30  # of addresses: what takes more fails, and the machine goes on
LETTERS = 600  # the longest sentence
OTHERS = (AssertionError, OSError, IndexError)  # that a docstring may name


def contents(value: Any) -> bytes:
    return value.tobytes() if type(value) is np.ndarray and value.dtype.kind in "fV" else b""


@functools.cache
def raises(file: str) -> tuple[range, ...]:
    """The lines of the raise statements of a source."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Raise))
    return tuple(range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in statements)


def is_ours(failure: BaseException) -> bool:
    """Whether a raise statement of this package made it, or the caller's own function did."""
    *_, (frame, line) = traceback.walk_tb(failure.__traceback__)
    file = frame.f_code.co_filename
    if not Path(file).is_relative_to(PACKAGE):
        return Path(file).parent == Path(__file__).parent
    return any(line in lines for lines in raises(file))


def fault_of(target: str, failure: Exception) -> str | None:
    """What is wrong with an exception, None where nothing is."""
    kind, message = type(failure), str(failure)
    ours = kind.__module__.startswith("refkernels.") or issubclass(kind, OTHERS)
    doc = TARGETS[target].__doc__ or ""
    named = any(base.__name__ in doc for base in kind.__mro__[:-3])
    if not isinstance(failure, TypeError | ValueError) and not (ours and named):
        wrong = "no TypeError or ValueError, nor named by the docstring"
    elif isinstance(failure, OSError):
        return None  # in the system's own words
    elif not is_ours(failure):
        wrong = "not a sentence of ours"
    elif not message.strip() or (kind is not AssertionError and not is_sentence(message)):
        wrong = "not one sentence"
    else:
        return None
    return f"{wrong}:\n{''.join(traceback.format_exception(failure, limit=-4))}"


def is_sentence(message: str) -> bool:
    return message.isprintable() and len(message) <= LETTERS


def outcome(target: str, first: list[Any], named: dict[str, Any]) -> tuple[bool, str | None]:
    """Whether a call answered, and what it did that it may not do. What is late is called again: it
    may have waited for its kernels to be compiled."""
    for _ in range(3):
        with contextlib.suppress(TooLong):
            return once(target, first, named)
    return False, f"not back in {SECONDS:g} s"


def once(target: str, first: list[Any], named: dict[str, Any]) -> tuple[bool, str | None]:
    """Calls the target."""
    values = [*first, *named.values()]
    before, state = [contents(value) for value in values], np.geterr()
    most = peak()
    answered, fault = False, None
    with warnings.catch_warnings(), limited():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            TARGETS[target](*first, **named)
            answered = True
        except Exception as failure:
            fault = fault_of(target, failure)
    if [contents(value) for value in values] != before:
        fault = fault or "an input was changed"
    if np.geterr() != state or not mode.is_default():
        fault = fault or "NumPy's error state or the floating-point mode was changed"
    if peak() - most > KILOBYTES:
        fault = fault or "a gigabyte and more was taken"
    return answered, fault


class TooLong(BaseException):
    """A call was not back in time. No function may catch it."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Ends what takes more than `SECONDS` of the processor, however busy the machine is."""

    def end(number: int, frame: Any) -> None:
        if any("/numba/" in caller.f_code.co_filename for caller, _ in traceback.walk_stack(frame)):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # a kernel is being compiled
        else:
            raise TooLong

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def peak() -> int:
    """The most memory that this process has held, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def shown(value: Any) -> str:
    try:
        return repr(value)[:200]
    except Exception:
        return f"a {type(value).__name__}"


@pytest.fixture(scope="module", autouse=True)
def _nobody_else(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No interpreter is found, no process started, and files are written aside."""

    def nothing(spec: Any, machine: str = "") -> Any:
        raise environments.NotInstalled(f"{spec} is not installed: this is a test")

    def here() -> Any:
        return sweeps.Lent(call_targets.InProcess(), 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("calls"))
        patch.setattr(environments, "find", nothing)
        patch.setattr(run, "Processes", here)
        call_targets.write_files()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, before[1]))
        # Kernels are compiled before the seconds are counted.
        for target, seed in itertools.product(TARGETS, range(4)):
            outcome(target, *arguments(np.random.default_rng(seed), target))
        yield
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_every_public_name_is_called_or_left_out_for_a_reason() -> None:
    public = call_targets.public()
    assert len(public) > 100
    missing = [name for name in public if name not in TARGETS and not call_targets.left_out(name)]
    assert missing == []
    rooms = {room.__name__.removeprefix("refkernels.") for room in call_targets.rooms()}
    assert set(call_targets.LEFT_OUT) <= rooms | set(public)


def test_only_type_errors_and_value_errors_come_out_of_calls(hunt: Any) -> None:
    names = list(TARGETS)
    answers: Counter[str] = Counter()
    for number, rng in hunt.cases(least=2 * len(names)):
        target = names[rng.integers(len(names))]
        first, named = arguments(rng, target)
        answered, fault = outcome(target, first, named)
        call = ", ".join([*map(shown, first), *(f"{key}={shown(named[key])}" for key in named)])
        assert fault is None, f"{target}({call})\n{fault}\n{hunt.replay(number)}"
        answers[target] += answered
    print(f"{hunt.run} calls of {len(names)} functions, {answers.total()} answered; {hunt.seed=}")
    assert hunt.only is not None or answers.total() > hunt.run / 5  # most are nearly right
    assert refkernels.ulp_error(1.0, 1.0).value == 0.0  # what came before left nothing behind
