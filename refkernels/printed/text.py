"""The printed tensors of a text: torch, paddle, oneflow, mindspore, numpy, jax, TensorFlow.

    tensor([[ 0.9277, 0.7211]], dtype=torch.float16)      <tf.Tensor: shape=(2,), ..., numpy=array(
    Tensor(shape=[2], dtype=float32, place=..., [0.8, 15.])     [1., 2.], dtype=float32)>

Nothing is evaluated: a bracket that holds anything but numbers is no tensor. Its name stands before
it with an equals sign or a colon, alone on the line above, or at a console's prompt.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 4_000_000  # of a text: a hundred times a long thread
MOST_TENSORS, MOST_NUMBERS = 1000, 20
_BEFORE, _AFTER = 600, 600  # characters searched for a header and a trailer

_NUMBER = r"[-+]?(?:(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|NaN|inf(?:inity)?|Infinity)"
_TOKEN = re.compile(
    rf"(?P<number>{_NUMBER})(?![\w.])|(?P<open>\[)|(?P<close>\])|(?P<gap>\.\.\.|…)"
    r"|(?P<truth>True|False)\b|(?P<skip>[\s,]+|(?<=\n)>+|\\)"
)
_CALLS = "tensor|Tensor|FloatTensor|array|Array|DeviceArray|asarray|to_tensor|constant|Parameter"
_VALUE = r"(?:\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>|'[^']*'|[^\s,\[\]()<>=]+(?:\([^()]*\))?)"
_HEADER = re.compile(
    rf"(?P<tf><\s*)?(?P<module>(?:\w+\.)*)(?P<call>{_CALLS})\s*[(:]\s*"
    rf"(?P<fields>(?:\w+\s*=\s*{_VALUE}\s*,\s*)*)"
    r"(?:(?:value|data|numpy)\s*=\s*)?(?:array\(\s*)?"
    rf"(?:(?P<scale>{_NUMBER})\s*\*\s*)?$"
)
_SCALAR = re.compile(
    rf"(?P<call>(?:<\s*)?(?<!\w)(?:\w+\.)*(?:{_CALLS})\s*[(:]\s*(?:\w+\s*=\s*{_VALUE}\s*,\s*)*"
    rf"(?:(?:value|data|numpy)\s*=\s*)?)(?P<number>{_NUMBER})\s*[,)>]"
)
_TRAILER = re.compile(rf"\s*(?:,\s*(?:\w+\s*=\s*)?{_VALUE}\s*)*[,\s]*\)?(?:\.astype\([^()]*\))?")
_DTYPE = re.compile(
    r"\b(float16|bfloat16|float32|float64|half|double|int8|int16|int32|int64|uint8|bool)\b",
    re.IGNORECASE,
)
_DTYPE_ALIASES = {"half": "float16", "double": "float64"}
_NAME = re.compile(r"(?P<name>[^\n=:：]*?)\s*(?:[=:：]|为|是)\s*$")
_CONSOLE = re.compile(r"^\s*(?:>>>|In\s*\[\d+\]:)\s*(?:print\()?(?P<name>[\w.]+)\)?\s*$")
_WORD = re.compile(r"^[ \t*`#-]*(?P<name>[^\W\d]\w{0,30})[ \t*`]*$")
_HEADING = re.compile(r"^\s*(?:#+\s*(?P<a>[^#\n]+?)|\*\*(?P<b>[^*\n]+)\*\*)\s*$")
_BARE = re.compile(
    r"^[ \t>*`#|-]*(?P<name>[^\n=:：|]{0,60}?[^\s=:：|])[ \t`]*(?:[=:：]|[-=]>|→|为|是)[ \t`]*"
    rf"(?P<number>{_NUMBER})[ \t,;`*|]*$",
    re.MULTILINE,
)
_TELLING = re.compile(r"(?:\D*\d){3}|[-+]?0\.0*$|[-+]?[ni]", re.IGNORECASE)  # no version, no count
_NO_TENSOR = re.compile(r"(?:shape|size|dim|dims|axis|axes|stride|strides|padding|perm|Out|In)$")
_MODULES = {
    "torch": "torch",
    "paddle": "paddle",
    "oneflow": "oneflow",
    "flow": "oneflow",
    "mindspore": "mindspore",
    "ms": "mindspore",
    "np": "numpy",
    "numpy": "numpy",
    "jnp": "jax",
    "jax": "jax",
    "tf": "tensorflow",
}


@dataclass(frozen=True)
class Printed:
    """A printed tensor.

    number     its place in the text, from 1
    line       the line on which it begins, from 1
    name       the name in front of it, "" for none
    framework  the framework that prints like this, "" if several do
    dtype      the printed dtype, None if there is none
    shape      its shape, None for a tensor that is printed with ... in it
    texts      its numbers in C order, with all of their digits
    scale      the number in front of the bracket that multiplies all of them, "" for none
    typed      it is part of code, np.array([...]), so there are no further digits
    spaced     it is a bare bracket whose numbers are separated by blanks, not commas
    bare       it is a number alone on a line, behind its name
    """

    number: int
    line: int
    name: str
    framework: str
    dtype: str | None
    shape: tuple[int, ...] | None
    texts: tuple[str, ...]
    scale: str
    typed: bool
    spaced: bool
    bare: bool = False

    def __str__(self) -> str:
        shape = "truncated" if self.shape is None else f"shape {self.shape}"
        parts = [self.dtype, self.framework, f"named {self.name!r}" if self.name else ""]
        return ", ".join([f"{self.number}: {shape}", *(part for part in parts if part)])


def read(stream: BinaryIO, called: str) -> str:
    """The text of a stream. Raises ValueError (one sentence) for a stream that is too long, empty,
    or not text."""
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{called} has more than {MOST_BYTES // 1_000_000} MB, more than any thread: give "
            "large arrays as .npy files with --input and --output."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{called} is not text in UTF-8: --pasted reads printed numbers.")
    if not text.strip():
        raise ValueError(f"{called} is empty: paste the tensors as they are printed.")
    return text


def read_path(path: Path) -> str:
    """The text of a file; raises like `read`, and OSError."""
    with path.open("rb") as stream:
        return read(stream, str(path))


def tensors(text: str) -> list[Printed]:
    """The printed tensors, in the order of the text.

    Raises ValueError, one sentence, if there are none or too many, if a bracket is not closed, or
    if rows have different lengths.
    """
    text = text.replace("\r\n", "\n").replace("\u2212", "-")
    printed: list[Printed] = []
    at = end = 0  # where the search continues, and where the previous tensor ended
    while (start := _next_start(text, at)) is not None:
        begin, scalar = start
        if scalar is not None:
            at, tensor = scalar.end("number"), _scalar(text, scalar, end, len(printed) + 1)
        else:
            at, tensor = _bracketed(text, begin, end, len(printed) + 1)
        if tensor is not None:
            printed.append(tensor)
            end = at
        if len(printed) > MOST_TENSORS:
            raise ValueError(f"The text has more than {MOST_TENSORS} tensors: paste fewer.")
    if not printed:
        raise ValueError(
            "The text has no printed tensor: paste what print(x) shows, such as "
            "tensor([[ 0.9277, 0.7211]])."
        )
    return printed


def numbers(text: str, first: int) -> list[Printed]:
    """The named numbers alone on a line, as losses are printed; counted from `first`."""
    found = (match for match in _BARE.finditer(text) if _TELLING.match(match["number"]))
    named = []
    for number, match in enumerate(itertools.islice(found, MOST_NUMBERS), first):
        line, texts = text.count("\n", 0, match.start("number")) + 1, (match["number"],)
        place = number, line, match["name"]
        named.append(Printed(*place, "", None, (), texts, "", False, False, True))
    return named


def _next_start(text: str, at: int) -> tuple[int, re.Match[str] | None] | None:
    """The start of the next bracket or printed number, with the number's match."""
    bracket = text.find("[", at)
    scalar = _SCALAR.search(text, at, len(text) if bracket < 0 else bracket + 80)
    if scalar is not None and (bracket < 0 or scalar.start() < bracket):
        return scalar.start(), scalar
    return None if bracket < 0 else (bracket, None)


def _scalar(text: str, match: re.Match[str], end: int, number: int) -> Printed | None:
    after = text[match.end("number") : match.end("number") + _AFTER]
    head = _HEADER.search(match["call"])
    if head is None:
        return None
    trailer = _TRAILER.match(after)
    assert trailer is not None
    return _printed(
        text, (match.start(), match.start()), end, number, head, trailer[0], (), (match["number"],)
    )


def _bracketed(text: str, begin: int, end: int, number: int) -> tuple[int, Printed | None]:
    """(where the search continues, the tensor whose bracket opens here or None)."""
    before = text[max(end, begin - _BEFORE) : begin]
    head = _HEADER.search(before)
    line = text.count("\n", 0, begin) + 1
    if head is None and _NO_TENSOR.search(before.rstrip(" =").rstrip()):
        return begin + 1, None
    texts: list[str] = []
    counts: list[int] = []  # the elements so far of each open bracket
    shape: list[int | None] = []
    at, depth, ragged, truncated, commas = begin, 0, False, False, False
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            if at >= len(text) and any("." in digits or "e" in digits for digits in texts):
                raise ValueError(f"The bracket that opens on line {line} is never closed.")
            return max(begin + 1, at), None
        at = token.end()
        kind = token.lastgroup
        if kind == "open":
            if counts:
                counts[-1] += 1
            counts.append(0)
            depth = max(depth, len(counts))
        elif kind == "close":
            level, count = len(counts) - 1, counts.pop()
            while len(shape) <= level:
                shape.append(None)
            ragged |= shape[level] not in (None, count)
            shape[level] = count
            if not counts:
                break
        elif kind in ("number", "truth"):
            counts[-1] += 1
            texts.append(token[0])
            ragged |= len(counts) < depth
        elif kind == "gap":
            truncated = True
        else:
            commas |= "," in token[0]
    if not texts or (head is None and _is_prose(texts, depth, before)):
        return at, None
    if ragged and not truncated:
        raise ValueError(f"The tensor on line {line} has rows of different lengths.")
    name_end = begin - len(before) + (len(before) if head is None else head.start())
    trailer = _TRAILER.match(text[at : at + _AFTER]) if head else None
    fields = trailer[0] if trailer else ""
    sizes = None if truncated else tuple(int(size or 0) for size in shape)
    tensor = _printed(
        text, (begin, name_end), end, number, head, fields, sizes, tuple(texts), not commas
    )
    return at + len(fields), tensor


def _is_prose(texts: list[str], depth: int, before: str) -> bool:
    """Whether a bare bracket is not a printed tensor: a reference [3], a shape [1, 32, 768]."""
    if depth > 1 or any(not digits.lstrip("-").isdigit() for digits in texts):
        return False
    return _NAME.search(before) is None or len(texts) < 2


def _printed(
    text: str,
    places: tuple[int, int],
    end: int,
    number: int,
    head: re.Match[str] | None,
    trailer: str,
    shape: tuple[int, ...] | None,
    texts: tuple[str, ...],
    spaced: bool = False,
) -> Printed:
    begin, name_end = places
    fields = (head["fields"] if head else "") + trailer
    dtype = _DTYPE.search(fields)
    kind = dtype[1].lower() if dtype else None
    module = (head["module"].rstrip(".").split(".")[-1] if head else "").lower()
    return Printed(
        number,
        text.count("\n", 0, begin) + 1,
        _name(text[max(end, name_end - _BEFORE) : name_end]),
        _framework(head, fields, module),
        _DTYPE_ALIASES.get(kind or "", kind),
        shape,
        texts,
        (head["scale"] or "") if head else "",
        bool(head and module and not head["tf"] and "shape=" not in fields),
        spaced,
    )


def _framework(head: re.Match[str] | None, fields: str, module: str) -> str:
    """The framework that prints a tensor like this."""
    if head is None:
        return ""
    if head["tf"] or module == "tf":
        return "tensorflow"
    if module in _MODULES:
        return _MODULES[module]
    if head["call"] == "Tensor":
        return "paddle" if "place=" in fields or "stop_gradient" in fields else "mindspore"
    if head["call"] in ("Array", "DeviceArray"):
        return "jax"
    if head["call"] == "array":
        return "numpy"
    return "oneflow" if "oneflow." in fields else "torch" if head["call"] == "tensor" else ""


def _name(before: str) -> str:
    """The name in front of a tensor, as it is written."""
    before = re.sub(r"Parameter containing:\s*$", "", before)
    before = re.sub(r"\bOut\s*\[\d+\]:\s*$", "", before)
    lines = [line.lstrip("> ") for line in before.split("\n")]
    if not lines[-1].strip():
        non_empty = (
            line for line in reversed(lines) if line.strip(" \t`") not in ("", "python", "py")
        )
        last = next(non_empty, "")
        original = next((raw for raw in reversed(before.split("\n")) if raw.strip(" >`")), "")
        if console := _CONSOLE.match(original):
            return console["name"]
        if heading := _HEADING.match(last):
            return (heading["a"] or heading["b"]).strip(" :：")
        if word := _WORD.match(last):
            return word["name"]
    else:
        last = lines[-1]
    match = _NAME.search(last[-100:])
    return match["name"].strip(" \t*`\"'#-(),|{")[-60:] if match else ""
