"""A cell: the process in which a kernel is judged. It receives bytes and returns bytes.

Run as a script. A message is the number of its bytes, in ten digits, and JSON on the standard
input; a reply is a line of JSON on the standard output, which the kernel's own prints do not
reach. The first message brings the adapter. {"begin": true} begins a session in a forked process:
calls of the kernel, up to {"end": true}. In a session it begins another one, in a fork of a process
that has compiled the kernel. A session that ends in any way is reported by {"ended": its exit
status}, negative for a signal. The host trusts no report of this process: it judges the bytes
later, in its own.

A call names files of the host that hold the inputs. They are mapped read-only, each array between
two protected pages, against the one behind it or the one before it. Where the kernel is a C
function, its outputs lie likewise, filled with NaNs that differ by call and element. Blocks of the
outputs' sizes are filled with NaNs and freed before each call. An answer that a later call changes
is told.

It needs the standard library and NumPy only (Python 3.8, NumPy 1.20).
"""

import ctypes
import glob
import json
import mmap
import os
import sys
import types
import warnings
from collections import deque
from functools import partial

import numpy as np

PAGE = mmap.PAGESIZE
ALIGNMENT = 64
LENGTH = 10
NO_ACCESS, READ, WRITE = 0, 1, 2
SHARED, PRIVATE, FIXED = 1, 2, 0x10
ANONYMOUS = 0x20 if sys.platform.startswith("linux") else 0x1000
POISON = 0xFFFE  # in every 16 bits: a NaN of every format, and none that arithmetic gives
LARGEST_POISON = 1 << 26
LIBRARIES = ("numpy", "torch", "jax", "jaxlib", "cupy")
SMALL, KEPT = 1 << 18, 32  # bytes of an answer that is kept, and how many are
MULTIPLIER = 0x9E3779B97F4A7C15

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
]  # fmt: skip
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def mapped(address, length, access, flags, file=-1, offset=0):
    where = libc.mmap(address, length, access, flags, file, offset)
    if where == ctypes.c_void_p(-1).value:
        raise MemoryError("mmap failed: %s" % os.strerror(ctypes.get_errno()))
    return where


class Guarded:
    """Whole pages between two protected ones, mapped from a file or new."""

    def __init__(self, length, file=None, offset=0, writable=False):
        self.length = max(-(-length // PAGE), 1) * PAGE
        whole = self.length + 2 * PAGE
        self.base = mapped(None, whole, NO_ACCESS, PRIVATE | ANONYMOUS)
        self.start, access = self.base + PAGE, READ | WRITE if writable or file is None else READ
        if file is None:
            mapped(self.start, self.length, access, PRIVATE | ANONYMOUS | FIXED)
            return
        handle = os.open(file, os.O_RDWR if writable else os.O_RDONLY)
        try:
            mapped(self.start, self.length, access, SHARED | FIXED, handle, offset)
        finally:
            os.close(handle)

    def bytes(self, first, length):
        """A view of some of its bytes. The pages are never released while a kernel may hold them:
        the process ends soon."""
        return np.frombuffer((ctypes.c_char * length).from_address(self.start + first), np.uint8)


def fill(count, itemsize, key):
    """NaNs, as integers of that size: they differ by key and element, while there are enough."""
    with np.errstate(over="ignore"):
        drawn = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(MULTIPLIER) + np.uint64(key)
    drawn ^= drawn >> np.uint64(29)
    exponent = {2: 0x7FC0, 4: 0x7FC00000, 8: 0x7FF8000000000000}[itemsize]  # of every such format
    payload = {2: 0x3F, 4: 0x3FFFFF, 8: 0x7FFFFFFFFFFFF}[itemsize]
    return ((drawn & np.uint64(payload)) | np.uint64(exponent)).astype("u%d" % itemsize)


def each(made, value):
    """What is made of a value, or of each in a list."""
    return [made(part) for part in value] if isinstance(value, (list, tuple)) else made(value)


class Calls:
    """The calls of one process. Mappings are kept, so that new content can appear at the same
    pointer; and small answers, with what they were: a later call may not change them."""

    def __init__(self, adapter):
        self.adapter = adapter
        self.regions, self.answers = {}, deque(maxlen=KEPT)

    def array(self, layout, writable):
        key = layout["file"], layout["at"], layout["pages"], writable
        if key not in self.regions:
            length, offset = layout["pages"] * PAGE, layout["at"]
            self.regions[key] = Guarded(length, layout["file"], offset, writable)
        try:
            bits = np.dtype(self.adapter.BITS.get(layout["dtype"], layout["dtype"]))
        except TypeError:  # a kernel that takes it has imported ml_dtypes
            raise NotImplementedError("NumPy has no %s" % layout["dtype"]) from None
        view = self.regions[key].bytes(layout["first"], layout["bytes"])
        array = np.ndarray(
            tuple(layout["shape"]), bits, view, layout["offset"], tuple(layout["strides"])
        )
        array.flags.writeable = writable
        return array

    def call(self, message):
        """The answers' headers and bytes."""
        adapter, device = self.adapter, message["device"]
        writable = message["writable"]
        arrays = {
            name: each(lambda part: self.array(part, writable), layout)
            for name, layout in message["inputs"].items()
        }
        adapter.poisoned = lambda: poisoned(message["poison"])
        adapter.allocate = self.allocating(message["key"], message["before"])
        tensors = {
            name: each(partial(adapter.tensor, dtype=message["dtypes"][name], device=device), array)
            for name, array in arrays.items()
        }
        adapter.synchronize(device)
        answers = adapter.called(message["direction"], tensors, message["params"])
        adapter.synchronize(device)
        overwrites = any(array.tobytes() != answer.tobytes() for array, answer in self.answers)
        headers, parts = {}, []
        for name, value in answers.items():
            headers[name] = each(lambda part: self.plain(part, arrays, parts), value)
        reply = {"status": "ok", "outputs": headers, "overwrites": overwrites}
        reply["threads"] = len(glob.glob("/proc/self/task/*"))
        return dict(reply, flushes=IMPORTED[0]) if flushes() else reply, parts

    def plain(self, value, arrays, parts):
        """An output's header, its array added to the parts; a lazy array is refused."""
        kind = type(value)
        if kind.__module__ == "builtins":
            raise TypeError("it returns a %s, which is not an array" % kind.__name__)
        known = vars(sys.modules.get(kind.__module__, types)).get(kind.__name__) is kind
        if kind.__module__.split(".")[0] not in LIBRARIES or not known:
            raise TypeError("it returns a %s, which is no plain array" % kind.__name__)
        dtype, array = self.adapter.array(value)
        array = np.asarray(array)
        dense = np.array(array, order="C")
        inputs = [part for x in arrays.values() for part in (x if type(x) is list else [x])]
        alias = array.size > 0 and any(np.may_share_memory(array, part) for part in inputs)
        header = {"dtype": dtype, "shape": list(array.shape), "bytes": dense.nbytes}
        parts.append(dense)
        if dense.nbytes <= SMALL and not alias:
            self.answers.append((array, dense))
        return dict(header, alias=bool(alias))

    def allocating(self, key, before):
        """The allocator of a C function's outputs: guarded pages, filled with NaNs."""

        def allocate(shape, dtype):
            dtype = np.dtype(dtype)
            count = int(np.prod(shape, dtype=np.int64))
            size = count * dtype.itemsize
            region = Guarded(size)
            region.bytes(0, region.length).view(np.uint16)[:] = POISON
            last = (region.length - size) // ALIGNMENT * ALIGNMENT
            view = region.bytes(0 if before else last, size)
            if dtype.kind == "f" or dtype == np.uint16:
                view.view("u%d" % dtype.itemsize)[:] = fill(count, dtype.itemsize, key)
            return view.view(dtype).reshape(shape)

        return allocate


def poisoned(sizes):
    """Fill blocks of these sizes with NaNs and free them: `empty` then returns NaNs."""
    for size in sizes:
        for _ in range(2):  # the first large one raises malloc's threshold for mapped blocks
            words = -(-min(size, LARGEST_POISON) // 2)
            blocks = [np.full(words, POISON, np.uint16) for _ in range(3)]
            del blocks


def one_line(error):
    lines = [line.strip()[:300] for line in str(error).splitlines() if line.strip()][:1]
    named = not lines or not isinstance(error, NotImplementedError)
    return ": ".join([type(error).__name__] * named + lines)


class Pipe:
    """Messages, and bytes. It reads nothing ahead: a forked process continues in place."""

    def __init__(self, read, write):
        self.read, self.write = read, write

    def message(self):
        """The next message; None at the end."""
        length = self.text(LENGTH)
        return json.loads(self.text(int(length))) if length else None

    def text(self, length):
        """So many bytes; none of them at the end."""
        text = bytearray()
        while len(text) < length:
            piece = os.read(self.read, length - len(text))
            if not piece:
                return ""
            text += piece
        return text.decode()

    def send(self, reply, parts=()):
        self.all(json.dumps(reply).encode() + b"\n")
        for part in parts:
            self.all(memoryview(part.reshape(-1).view(np.uint8)) if part.size else b"")

    def all(self, content):
        while len(content):
            content = content[os.write(self.write, content) :]


IMPORTED = [""]


def flushes():
    return sys.float_info.min * 0.5 == 0.0


def find_spec(name, path=None, target=None):
    """Finds nothing: notes the last import that began before the process flushed subnormals."""
    if not flushes():
        IMPORTED[0] = name


def loaded(source):
    """The adapter, with the kernel's file loaded."""
    adapter = types.ModuleType("refkernels_kernel")
    sys.modules[adapter.__name__] = adapter
    sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_spec))
    exec(compile(source, "kernel_adapter.py", "exec"), vars(adapter))
    return adapter


def callables():
    """By its module, its module or class, and its name, all that modules and classes can call."""
    found = {}
    for name, module in list(sys.modules.items()):
        if type(module) is types.ModuleType:
            holders = {name: dict(vars(module))}
            for key, value in holders[name].items():
                if issubclass(type(value), type) and value.__module__ == name:
                    holders["%s.%s" % (name, key)] = dict(vars(value))
            for holder, own in holders.items():
                found.update(((name, holder, k), v) for k, v in own.items() if callable(v))
    return found


def replaced(before, files):
    """The functions of these files that others' modules and classes have, and whatever else is not
    what it was before in a module: libraries replace functions too."""
    known, folders, found = {name for name, _, _ in before}, set(map(os.path.dirname, files)), []
    for (name, holder, key), value in callables().items():
        old, home = before.get((name, holder, key)), getattr(sys.modules[name], "__file__", None)
        put = old is not None or name not in known
        if type(value) is types.FunctionType:
            path = os.path.dirname(value.__code__.co_filename)
            put = put and path in folders and os.path.dirname(home or "") not in folders
        else:
            put = old is not None and old is not value and holder == name
        found += ["%s.%s" % (holder, key)] if put else []
    return found


def answer(session, message):
    try:
        return session.call(message)
    except BaseException as error:
        known = ((NotImplementedError, "unsupported"), (MemoryError, "oom"))
        status = next((status for kind, status in known if isinstance(error, kind)), "error")
        return {"status": status, "reason": one_line(error)}, []


def serve(pipe, adapter, before, forks):
    session, file = Calls(adapter), adapter.KERNEL["file"]
    files = [file, getattr(sys.modules.get("refkernels_candidate"), "__file__", file)]
    while (message := pipe.message()) and "end" not in message:
        if "replaced" in message:
            pipe.send({"replaced": replaced(before, files)})
        elif "begin" not in message:
            pipe.send(*answer(session, message))
        elif forks:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                try:
                    serve(pipe, adapter, before, forks)
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            ended = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            pipe.send({"ended": ended})


def main():
    pipe = Pipe(os.dup(0), os.dup(1))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    first = pipe.message()
    before = callables()
    try:
        adapter = loaded(pipe.text(first["source"]))
    except BaseException as error:
        pipe.send({"status": "error", "reason": one_line(error)})
        return
    pipe.send({"status": "ok", "arrays": adapter.KERNEL["arrays"]})
    serve(pipe, adapter, before, first["fork"] and hasattr(os, "fork"))


if __name__ == "__main__":
    main()
