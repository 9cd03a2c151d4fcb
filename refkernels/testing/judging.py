"""judge(): judges a kernel that may have been written to pass, from a test or a loop; junit()."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refkernels.judging.judgement import Judgement
    from refkernels.op import Op


def judge(
    kernel: str | Callable[..., Any],
    op: str | Op | None = None,
    *,
    task: str | Path | None = None,
    dtype: str = "",
    level: str = "default",
    seed: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    lengths: Mapping[str, Sequence[int]] | None = None,
    dtypes: Mapping[str, Sequence[str]] | None = None,
    device: str = "cpu",
    times: bool = False,
    allow_overflow: bool | None = None,
) -> Judgement:
    """The verdict on a kernel that runs in processes of its own, on inputs that it has not seen.

        assert judge(my_softmax, "softmax", level="quick").verdict == "right"

    kernel      FILE.py:FUNCTION, or a function at a module's top level, whose file is loaded there
    op          its op, if the function's name does not name it, or an oracle of your own
    task        a file with Model and get_inputs(): `kernel` is a class, or FILE.py[:CLASS]
    dtype       of the floating inputs ("": float32, or a task's), or the one of the others: "int8"
    level       "quick", "default" (up to a minute) or "full"
    seed        of all random inputs; by default a secret one
    shapes      by input, those of the kernel's use, which are asked first: {"x": (64, 1000)}
    lengths     by letter of the op's signature, the only lengths that the kernel supports
    dtypes      by input of integers or 8-bit numbers, its only formats: {"a": ["int8"]}
    times       whether a right kernel is timed, on calls that are judged too: `Judgement.time`
    allow_overflow  as for `assert_kernel`

    Raises TypeError for a function that no file has at its top level; ValueError for a question
    that makes no sense, FrameworkError for a kernel that cannot be run.
    """
    from refkernels.judging.judge import judge as verdict_on  # which assertions do not need
    from refkernels.judging.tasks import judge_candidate

    name = kernel if isinstance(kernel, str) else _named(kernel)
    ask = verdict_on if task is None else partial(judge_candidate, Path(task))
    return ask(
        name, op, dtype=dtype, level=level, seed=seed, shapes=shapes, lengths=lengths,
        dtypes=dtypes, device=device, times=times, allow_overflow=allow_overflow,
    )  # fmt: skip


def junit(judgements: Iterable[Judgement | Mapping[str, Any]], lang: str = "en") -> str:
    """Judgements or their records as JUnit's XML. Raises ValueError for another language."""
    from refkernels.judging.judgement import junit as document
    from refkernels.reporting.judging import views

    records = [j if isinstance(j, Mapping) else j.to_dict() for j in judgements]
    return document(records, ["\n".join(views.lines(r, "", lang)[:-1]) for r in records])


def _named(kernel: Callable[..., Any]) -> str:
    function = inspect.unwrap(getattr(kernel, "py_func", kernel))
    name = getattr(function, "__qualname__", "")
    try:
        file = inspect.getsourcefile(function)
    except TypeError:
        file = None
    if file is None or not name.isidentifier() or not Path(file).is_file():
        raise TypeError("no file has this function at its top level: give FILE.py:FUNCTION.")
    return f"{file}:{name}"
