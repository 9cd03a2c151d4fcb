"""A recorded step, run again in float64.

Every value that a call makes gets a *slot*; a call that changes memory in place gives new slots to
all tensors that see this memory. `ExactRun` makes all values. `ExactRun.again` runs what
depends on edits of some calls, and leaves the rest.
"""

import functools
import json
import math
import mmap
import os
import struct

import in_torch  # of refkernels.profiling
import torch
from in_torch import RecordedCall
from in_torch import TensorNumber as Tensor
from torch.utils._pytree import tree_flatten
from unfused import decomposed, unfused

CALLS = "trace/calls"  # the tensor of a step's file that holds its calls
DTYPES = {word: getattr(torch, name, None) for name, word in in_torch.DTYPES.items()}
FAILURES = RuntimeError, LookupError, TypeError, ValueError, AttributeError, AssertionError


class Unseen(Exception):
    """Why a program cannot be run again, in one sentence."""


@functools.cache
def opened(path):
    """(header, tensors by name) of a safetensors file, or of one that has some of its tensors."""
    with open(path, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    repeated = json.loads(header.pop("__metadata__", {}).get("repeated", "{}"))

    def tensor(name):
        of, shape, *step = repeated.get(name, [name, None])
        if step:
            earlier = os.path.join(os.path.dirname(path), "step_%06d.safetensors" % step[0])
            return opened(earlier)[1](of).reshape(shape)
        entry = header[of]
        shape, dtype = shape or entry["shape"], DTYPES[entry["dtype"]]
        begin, end = entry["data_offsets"]
        if begin == end:
            return torch.empty(shape, dtype=dtype)
        count = (end - begin) // dtype.itemsize
        return torch.frombuffer(content, dtype=dtype, offset=start + begin, count=count).reshape(
            shape
        )

    return {**header, **repeated}, tensor


class RecordedProgram:
    """The recorded calls of a step, and the values that no call made."""

    def __init__(self, path):
        header, self.tensor = opened(path)
        if CALLS not in header:
            raise Unseen("its calls were not recorded")
        record = json.loads(self.tensor(CALLS).numpy().tobytes())
        shared = [k for k, call in enumerate(record["calls"]) if "c10d" in call[0]]
        if shared:  # what comes behind depends on other processes
            record |= {"calls": record["calls"][: shared[0]], "unseen": ["other processes"]}
            record["gradients"] = {}
        self.calls = [RecordedCall(k, call, record["places"])
                      for k, call in enumerate(record["calls"])]  # fmt: skip
        self.leaves = {int(n): name for n, name in record["leaves"].items()}
        self.drawn = {int(n): name for n, name in record["drawn"].items()}
        self.gradients, self.outputs = record["gradients"], record["outputs"]
        self.loss, self.unseen = record["loss"], record["unseen"]
        self.header = header

    def recorded(self, number):
        """A leaf's value, in the format in which it was recorded."""
        name = self.leaves[number]
        if name not in self.header:
            raise Unseen("%s was not recorded" % name)
        return self.tensor(name)

    def owner(self, number):
        """The name of the parameter or buffer that a leaf is, or None."""
        parts = self.leaves.get(number, "trace").split("/")
        return "/".join(parts[1:-1]) if parts[0] != "trace" else None

    def is_buffer(self, number):
        """Whether a leaf is a buffer, which calls may change that do not say so."""
        return self.leaves.get(number, "").startswith("buffers/")


class ExactRun:
    """All values of a program, `edits` made: a function of the run, the call, its arguments for
    each edited call's index. `values`: by slot; `made`: the (call, result) of each slot, or the
    leaf's number; `needs`: the slots that a call reads; `slots`: those that it makes. `tables`:
    other values of leaves, by number; `opened`: calls that are run as those of their formula."""

    def __init__(self, program, edits, tables, opened):
        self.program, self.edits, self.tables = program, {}, tables
        self.values, self.made, self.needs, self.slots = [], [], [], []
        self.state, self.at_leaf = {}, {}  # number -> slot, now and at first
        self.changed = {}  # slots by number of what a call changes and does not return
        self._live, self._groups, self._seen = {}, {}, {}  # the last: slots by storage
        with torch.no_grad():
            calls, program.calls = program.calls, []
            for k, call in enumerate(calls):
                parts = (decomposed if call in opened else unfused)(call, self._entered)
                for part in parts:
                    part.index = len(program.calls)
                    if k in edits and part is call:
                        self.edits[part.index] = edits[k]
                    program.calls.append(part)
                    self._run(part)
        self._live = self._groups = self._seen = None

    def _slot(self, number, value, made):
        self._seen.setdefault(value.untyped_storage()._cdata, []).append(len(self.values))
        self.values.append(value)
        self.made.append(made)
        self.state[number] = len(self.values) - 1
        return self.state[number]

    def made_by(self, call):
        """The slots that a call makes or changes."""
        changed = self.changed.get(call.index, {}).values()
        return [slot for slot in (*self.slots[call.index], *changed) if slot is not None]

    def _enter(self, number):
        """The slot of a tensor that a call reads, now."""
        if number not in self.state:
            value = self.tables.get(number)
            value = in_torch.widened(self.program.recorded(number) if value is None else value)
            self._live[number] = value
            self._groups.setdefault(value.untyped_storage()._cdata, set()).add(number)
            held = value.clone() if self.program.is_buffer(number) else value
            self.at_leaf[number] = self._slot(number, held, number)
        return self.state[number]

    def _entered(self, number):
        """A tensor's value, as the next call sees it."""
        self._enter(number)
        return self._live[number]

    def _run(self, call):
        self.needs.append([self._enter(number) for number in call.numbers])
        live = self._live
        if call.writes:
            self._keep(call)
        given = lambda item: live[item.number] if isinstance(item, Tensor) else item  # noqa: E731
        results = evaluate(self, call, given)
        slots = []
        for k, (number, value) in enumerate(zip(call.results, results)):
            if number is None or not isinstance(value, torch.Tensor):
                slots.append(None)
                continue
            live[number] = value
            self._groups.setdefault(value.untyped_storage()._cdata, set()).add(number)
            slots.append(self._slot(number, value, (call.index, k)))
        self.slots.append(slots)
        if call.writes:
            seeing = set().union(*(self._groups[storage] for storage in self._written(call)))
            self.changed[call.index] = {
                number: self._slot(number, live[number], (call.index, 0))
                for number in seeing - set(call.results)
            }

    def _written(self, call):
        """The storages that a call writes."""
        for k, argument in enumerate(call.function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = call.kwargs.get(argument.name, call.args[k] if k < len(call.args) else None)
                for item in tree_flatten(value)[0]:
                    if isinstance(item, Tensor):
                        yield self._live[item.number].untyped_storage()._cdata

    def _keep(self, call):
        """Copies of all values that a call is about to change."""
        for storage in self._written(call):
            for slot in self._seen.pop(storage, ()):
                self.values[slot] = self.values[slot].clone()

    def again(self, edits, reach, stop):
        """The values of slots that other edits change, by slot: those of the next `reach` calls,
        before the call `stop`; and whether all of these calls can be run."""
        fresh, left = {}, reach
        values = self.values
        for call in self.program.calls[min(edits) : stop]:
            needs = self.needs[call.index]
            if call.index not in edits and not any(slot in fresh for slot in needs):
                continue
            now = dict(zip(call.numbers, (fresh.get(slot, values[slot]) for slot in needs)))
            may_write = call.writes or any(map(self.program.is_buffer, now))
            if may_write or call.index in edits:  # what an edit puts in a buffer's place is kept
                now = {number: value.clone() for number, value in now.items()}
            given = lambda item, now=now: now[item.number] if isinstance(item, Tensor) else item  # noqa: E731
            try:
                with torch.no_grad():
                    results = evaluate(self, call, given, edits.get(call.index))
            except FAILURES:
                return fresh, False
            for slot, value in zip(self.slots[call.index], results):
                if slot is not None:
                    fresh[slot] = value
            for number, slot in self.changed.get(call.index, {}).items():
                if number in now:
                    fresh[slot] = now[number]
            left -= 1
            if not left:
                break
        return fresh, True


def in_float64(value, given):
    """Arguments of a call in float64, on this machine."""
    if isinstance(value, (list, tuple)):
        return type(value)([in_float64(item, given) for item in value])
    if isinstance(value, dict):
        return {name: in_float64(item, given) for name, item in value.items()}
    value = torch.device("cpu") if isinstance(value, torch.device) else given(value)
    return value if isinstance(value, torch.Tensor) else in_torch.widened(value)


def fitting(value, shape):
    """The shape, or with other lengths of one axis as a value of other rows fills it."""
    count, wanted = value.numel(), math.prod(shape)
    fills = [k for k, axis in enumerate(shape) if axis and count % (wanted // axis) == 0]
    if count != wanted and wanted > 0 and fills:
        shape[fills[0]] = -1
    return shape


def evaluate(run, call, given, edit=None):
    """The results of a call in float64."""
    edit = edit or run.edits.get(call.index)
    function, args, kwargs = call.function, call.args, call.kwargs
    drawn, tensor = run.program.drawn, run.program.tensor
    if edit is not None:
        function, args, kwargs, made = edit(run, function, args, kwargs)
        if made is not None:
            return [made] * max(len(call.results), 1)
    args, kwargs = in_float64((args, kwargs), given)
    if call.draws and all(number in drawn for number in call.results):
        values = [in_torch.widened(tensor(drawn[number])) for number in call.results]
        if len(values) == 2 and args and call.word == "native_dropout":
            values[0] = args[0] * values[1] / (1.0 - args[1])  # the mask was drawn
        if call.writes and isinstance(args[0], torch.Tensor):
            return [args[0].copy_(values[0])]
        return values
    try:
        result = in_torch.run_wide(function, args, kwargs)
        results = [result] if isinstance(result, torch.Tensor) else tree_flatten(result)[0]
    except RuntimeError:  # an edit may have made its argument longer
        if function not in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            raise
        results = [args[0].reshape(fitting(args[0], list(args[1])))]
    if "empty" in call.name and edit is None:
        for value in results:
            if in_torch.floating(value):
                value.fill_(math.nan)  # whoever fills it must have been seen
    return results
