"""The arrows of the design, which module may import which: checked in the sources, not the docs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from refkernels import registry
from refkernels.contexts import Context
from refkernels.diagnosis import explanation

PACKAGE = Path(__file__).parent.parent / "refkernels"
FORMULAS_OF = {
    "attention_ref": {"softmax_ref"},
    "experts_ref": {"softmax_ref"},
    "fused_ref": {"activation_ref", "loss_ref", "norm_ref", "softmax_ref"},
    "loss_ref": {"activation_ref", "softmax_ref"},
    "optimizer_ref": {"quantization_ref"},
    "scaled_attention_ref": {"attention_ref"},
    "scan_ref": {"activation_ref"},
}  # whose formulas an oracle's are made of
# What these may know; of others the order of the page says it.
CORE: dict[str, set[str]] = {
    "arithmetic": set(),
    "records": set(),
    "capture": set(),  # one file that is copied to other machines
    "kernels": {"arithmetic"},
    "metrology": {"arithmetic", "records", "op", "range_limits", "truth"},
    "frameworks": {"records", "registry", "op"},  # the op that a kernel of the user's computes
    "reporting": {"records"},
}
EVERYBODYS = {"suggestion", "target_names", "arguments"}


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Those inside a node, however deep, but for what only a type checker reads."""
    checked = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    for part in ("orelse",) if checked else ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from statements(inner)


@cache
def imported_names(path: Path) -> frozenset[str]:
    """The names that a file imports from this package, anywhere in the file, except for imports
    that only a type checker reads."""
    names: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({f"{node.module}.{alias.name}" for alias in node.names})
    return frozenset(name for name in names if name.split(".")[0] == PACKAGE.name)


def imported_modules(path: Path) -> set[str]:
    """The modules of this package that a file imports, or imports names of."""
    imported, known = set(), modules()
    for name in imported_names(path):
        while name not in known:
            name = name.rpartition(".")[0]
        imported.add(name)
    return imported - {PACKAGE.name, module_of(path)}


def imported_rooms(path: Path) -> set[str]:
    """The rooms of this package that a file imports."""
    parts = [name.split(".") for name in imported_names(path)]
    return {part[1] for part in parts if len(part) > 1 and part[1] != "__version__"}


@cache
def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


@cache
def modules() -> frozenset[str]:
    return frozenset(map(module_of, sources()))


def test_no_module_imports_itself_through_others() -> None:
    arrows = {module_of(path): imported_modules(path) for path in sources()}
    assert sum(map(len, arrows.values())) > 1000
    TopologicalSorter(arrows).prepare()  # raises CycleError, which names the circle


def test_no_room_imports_itself_through_others() -> None:
    arrows: dict[str, set[str]] = {}
    for path in sources():
        arrows.setdefault(room_of(path), set()).update(imported_rooms(path) - {room_of(path)})
    assert sum(map(len, arrows.values())) > 50
    TopologicalSorter(arrows).prepare()


def test_a_room_imports_only_rooms_above_it_in_the_page() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = [line.partition(" ─")[0] for line in page.split("```")[1].split("\n")[1:-1]]
    place = {name: number for number, line in enumerate(listed) for name in line.split(", ")}
    rooms = {room_of(path) for path in sources() if path.parent != PACKAGE or "_ref" in path.name}
    places = {room: place.get(room, place["*_ref"]) for room in rooms if room.endswith("_ref")}
    places |= {room: place[room] for room in [*rooms, "capture"] if room not in places}
    assert places.keys() >= place.keys() - {"*_ref"}
    for path in sources():
        for room in imported_rooms(path) - {room_of(path)}:
            if room in places and room_of(path) in places:
                same = room.endswith("_ref") and room in FORMULAS_OF.get(room_of(path), ())
                assert places[room] < places[room_of(path)] or same, f"{path} imports {room}"


def test_imports_by_a_string_are_declared() -> None:
    """What this file cannot read: lazy public names, the registry's oracles, the kernels' rooms and
    compiler, and the one hook by which an explanation reaches the words above it."""
    users = {module_of(path) for path in sources() if "import_module(" in path.read_text("utf-8")}
    assert users == {
        "refkernels",
        "refkernels.arithmetic.compiler",  # Numba and LLVM, where a kernel needs them
        "refkernels.arithmetic.jit",
        "refkernels.capture",  # the framework of the model that it is given
        "refkernels.cli.app",  # a command, when it is used
        "refkernels.contexts",
        "refkernels.diagnosis.explanation",
        "refkernels.frameworks.remote.worker",  # the framework, for its version
        "refkernels.metrology",
        "refkernels.reporting",
        "refkernels.registry",
        "refkernels.runs.sweeps",
        "refkernels.runs.sweeps.template",
    }
    assert explanation.RENDERER == "refkernels.rendering"


FUNCTIONS = ("kernels", "contexts", "elementwise")  # which have names of their own: exp, matmul
NAMES_OPS = {  # what frameworks call an op, the adapters' calls, and what a small training steps
    "alignment/updates.py",
    "training/null_runs.py",
    "training/steps.py",
}
OTHER_WORDS = {  # strings that are an op's name and mean something else
    ("reporting", "linear"),  # an axis' scale, and the op of the threads' tables
    ("reporting", "log"),  # an axis' scale
    ("reporting", "cos"),  # the op of the threads' tables
    ("reporting", "sin"),
    ("reporting", "rsqrt"),  # a word in models' names
    ("alignment", "momentum"),  # a hyper-parameter
    ("alignment", "linear"),  # a schedule
    ("capture", "momentum"),
}


def strings_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def test_no_room_but_the_oracles_and_their_models_knows_an_op_by_its_name() -> None:
    """A name that is also that of an output, a form or a primitive of formulas (mean, sum, exp)
    does not count."""
    ops = registry.ops()
    definitions = [op.definition for op in ops.values() if op.definition is not None]
    words = {name for op in ops.values() for name in (*op.outputs, *op.gradients)}
    words |= {form for definition in definitions for form in definition.forward.forms}
    names = set(ops) - words - set(vars(Context))
    assert len(names) > 30
    knowing = PACKAGE / "diagnosis" / "models", PACKAGE / "frameworks" / "remote"
    asking = [
        path
        for path in sources()
        if not room_of(path).endswith("_ref")
        and room_of(path) not in FUNCTIONS
        and not set(knowing) & set(path.parents)
        and path.relative_to(PACKAGE).as_posix() not in NAMES_OPS
    ]
    assert len(asking) > 300
    named = {
        (str(path.relative_to(PACKAGE)), name)
        for path in asking
        for name in strings_of(path) & names
        if (room_of(path), name) not in OTHER_WORDS
    }
    assert not named


MOST_LINES = 500
LONGER = {  # sent or copied to another interpreter as one file
    "capture.py",
    "frameworks/remote/exporter.py",
    "frameworks/remote/worker.py",
    "profiling/in_torch.py",
}


def test_a_module_has_at_most_500_lines() -> None:
    lengths = {
        path.relative_to(PACKAGE).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in sources()
    }
    assert {name for name, lines in lengths.items() if lines > MOST_LINES} == LONGER


SHARED_NAMES = {"Backward"}  # of four families, each public there


def test_a_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    several = {name: places for name, places in homes.items() if len(places) > 1}
    assert several.keys() <= SHARED_NAMES, several
    assert len(homes) > 300


def test_the_core_knows_no_room_beside_it() -> None:
    for path in sources():
        room = room_of(path)
        if room in CORE.keys() | EVERYBODYS:
            known = CORE.get(room, set()) | {room} | (EVERYBODYS if room in CORE else set())
            assert imported_rooms(path) <= known, path


def test_remote_files_know_nothing_of_the_host() -> None:
    remote = [path for path in sources() if path.parent == PACKAGE / "frameworks" / "remote"]
    assert len(remote) > 5
    for path in remote:
        assert imported_rooms(path) == set(), path
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_import_refkernels_imports_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import refkernels;"
        "print(' '.join(sorted({m.split('.')[0] for m in set(sys.modules) - before})))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "refkernels" in answer
    assert [name for name in answer if name not in sys.stdlib_module_names] == ["refkernels"]


def test_assertions_explanations_and_alignments_import_no_plots_and_no_templates() -> None:
    code = (
        "import sys, refkernels.testing, refkernels.diagnosis.explain, refkernels.reporting;"
        "import refkernels.rendering, refkernels.alignment, refkernels.reporting.alignment.page;"
        "print(*{'matplotlib', 'jinja2', 'rich'} & set(sys.modules), 'refkernels' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.split() == ["True"], answer.stderr


def test_every_public_name_can_be_loaded_and_checkers_see_it() -> None:
    """All oracles among them."""
    import refkernels

    for name in refkernels.__all__:
        assert getattr(refkernels, name) is not None
    oracles = {path.stem for path in Path(refkernels.__file__).parent.glob("*_ref*")}
    assert oracles == {name for name in refkernels.__all__ if name.endswith("_ref")}
    stub = Path(refkernels.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imported = {a.asname for node in ast.parse(stub).body for a in getattr(node, "names", ())}
    assert imported == {*refkernels.__all__} - {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = refkernels.missing


def test_only_what_numba_types_has_no_types() -> None:
    """mypy is lenient in the rooms with long kernels."""
    rooms = [*(PACKAGE / "metrology").glob("*.py"), *(PACKAGE / "runs/sweeps").glob("*.py")]
    nodes = [node for path in rooms for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    untyped = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.returns is None]
    decorators = [", ".join(map(ast.unparse, node.decorator_list)) for node in untyped]
    assert len(decorators) > 40
    assert all(text.startswith(("njit", "inner", "intrinsic")) for text in decorators)


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest imports them by it."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert len({*names}) == len(names), {name for name in names if names.count(name) > 1}
