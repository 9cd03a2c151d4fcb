"""torch's compiler, which takes seconds to import, is not imported for an optimizer's step."""

from collections.abc import Callable
from pathlib import Path

import pytest
from plain_interpreter import PlainInterpreter

from refkernels.frameworks import catalog

ADAPTER = Path(catalog.__file__).parent / "remote" / "torch_adapter.py"
STEP = """
import runpy, sys
import torch
kept = sys.modules.pop("torch._dynamo", None)
forward = runpy.run_path(sys.argv[1])["forward"]
x = torch.ones(3)
for op in ("sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop"):
    state = {"adam": "mv", "adamw": "mv", "momentum": ["buf"]}.get(op, ["accum"])
    inputs = {name: x.clone() for name in ("param", "grad", *(state if op != "sgd" else ()))}
    answer = forward(op, inputs, {})["param"]
    assert bool((answer < x).all())
    print(op, "torch._dynamo" in sys.modules)
if kept is not None:
    sys.modules["torch._dynamo"] = kept
"""
MORE = """
import runpy, sys
sys.path.insert(0, sys.argv[2])
without_compiler = runpy.run_path(sys.argv[1])["without_compiler"]
with without_compiler("slow_compiler"):
    import slow_compiler
    assert slow_compiler.disable(len, False, wrapping=False) is len
    assert slow_compiler.graph_break() is None
print("slow_compiler" in sys.modules)
with without_compiler("slow_compiler"):
    from slow_compiler import LEVEL
    import slow_compiler.backends
print(LEVEL, slow_compiler.backends.NAMES, sys.modules["slow_compiler"].LEVEL)
"""


@pytest.mark.framework("torch")
def test_no_step_of_an_optimizer_imports_it(plain: Callable[[str], PlainInterpreter]) -> None:
    lines = plain("torch").run(STEP, str(ADAPTER)).splitlines()
    assert lines == [
        f"{op} False" for op in ("sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop")
    ]


@pytest.mark.framework("torch")
def test_whoever_asks_more_of_it_gets_it(
    plain: Callable[[str], PlainInterpreter], tmp_path: Path
) -> None:
    package = tmp_path / "slow_compiler"
    package.mkdir()
    (package / "__init__.py").write_text("LEVEL = 3\n")
    (package / "backends.py").write_text("NAMES = ('eager',)\n")
    printed = plain("torch").run(MORE, str(ADAPTER), str(tmp_path))
    assert printed.splitlines() == ["False", "3 ('eager',) 3"]
