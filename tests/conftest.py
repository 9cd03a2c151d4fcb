"""What all tests share: Hypothesis prints how to reproduce what it finds; in CI it tries the same
examples each time, so that a change fails for what it changed. `make hunt` tries many others."""

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hunting import ALL, EXAMPLES, HUNT, LEFT, left_out
from hypothesis import HealthCheck, settings
from plain_interpreter import PlainInterpreter
from presence import missing

from refkernels.arithmetic import small, waiting
from refkernels.frameworks.gateway import Session
from refkernels.testing import cause

# As for the gateway's frameworks: threads of a training that wait for work use no processor.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

settings.register_profile(
    "run",
    deadline=None,
    print_blob=True,
    max_examples=EXAMPLES,
    derandomize="CI" in os.environ and HUNT == 1,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("quick", parent=settings.get_profile("run"), max_examples=8)
settings.load_profile("run")

# Tests try the kernels, whatever the size of the array; the fallbacks are compared with them.
small.allowance.elements = 0
waiting.NOTICE_AFTER_S = float("inf")  # no command says that a slow machine compiles

# An assertion that fails as it should is not explained: causes have tests of their own (`causes`).
cause.SECONDS = 0.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Rows are left to `make all-tests`, unless a test is asked for by its name.

    Files that ask frameworks, or whose tests share explanations, come first: of several
    processes, the one that has the first tests starts the frameworks and explains, and the others
    take from its last ones."""
    if not (ALL or all("::" in name for name in config.args)):
        left = set(left_out(items))
        items[:] = [item for item in items if item not in left]
        LEFT["rows"] += len(left)
        getattr(config, "workeroutput", LEFT)["rows"] = LEFT["rows"]
    sessions = {"started", "plain", "explained_once"}
    asking = {item.path for item in items if sessions & {*getattr(item, "fixturenames", ())}}
    items.sort(key=lambda item: item.path.suffix != ".ipynb" and item.path not in asking)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each process of the tests leaves out the same rows, and says how many."""
    LEFT["rows"] = getattr(node, "workeroutput", LEFT).get("rows", 0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"{LEFT['rows']:,} rows of tests are left to `make all-tests`.")


def pytest_collection_finish() -> None:
    """Eleven thousand tests live to the end: the garbage collector need not look at them again, and
    at what is new as seldom as in the command."""
    gc.freeze()
    gc.set_threshold(50_000)


_IMPORTED: dict[str, Any] = {}


def pytest_runtest_setup(item: Any) -> None:
    """What a test draws from its module's RNG does not depend on the tests that ran before it."""
    rng = getattr(getattr(item, "module", None), "RNG", None)
    if rng is not None:
        known = rng.bit_generator.state
        rng.bit_generator.state = _IMPORTED.setdefault(item.module.__name__, known)


@pytest.fixture
def causes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing assertion looks for its cause, whatever other tests have spent."""
    monkeypatch.setattr(cause, "SECONDS", 600.0)
    monkeypatch.setattr(cause, "_spent", 0.0)


@pytest.fixture
def judged_once(monkeypatch: pytest.MonkeyPatch, plain: Callable[[str], PlainInterpreter]) -> None:
    """Runs that several tests compare with are judged once: for runs that do not change."""
    from judged_once import install

    install(monkeypatch, plain)


@pytest.fixture(scope="session")
def started() -> Iterator[Callable[..., Session]]:
    """started(name, flag="value"): the session of a framework, started or with the reason why not;
    one for all tests of a process, as an import takes seconds."""
    sessions: dict[str, Session] = {}

    def get(name: str, **flags: str) -> Session:
        session = sessions.setdefault(f"{name} {flags}", Session(name, flags, timeout=600.0))
        session.start()
        return session

    yield get
    for session in sessions.values():
        session.close()


@pytest.fixture(scope="session")
def session_for(started: Callable[..., Session]) -> Callable[..., Session]:
    """session_for(name, flag="value"): the started session of a real framework. One that is not
    installed is a skip that says why; with REFKERNELS_REQUIRE=torch,paddle,... it is a failure."""

    def get(name: str, **flags: str) -> Session:
        session = started(name, **flags)
        if session.status == "ok":
            return session
        missing(name, f"{name}: {session.status}: {session.reason}")

    return get


@pytest.fixture(scope="session")
def plain() -> Iterator[Callable[[str], PlainInterpreter]]:
    """plain(framework): its interpreter, one for all tests of a process, or for those of a use."""
    interpreters: dict[tuple[str, str], PlainInterpreter] = {}

    def get(framework: str, use: str = "") -> PlainInterpreter:
        if (framework, use) not in interpreters:
            interpreters[framework, use] = PlainInterpreter(framework)
        return interpreters[framework, use]

    yield get
    for interpreter in interpreters.values():
        interpreter.close()
