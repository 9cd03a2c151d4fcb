"""Writes the source of one fused kernel of balls, from a RowProgram.

    for every row of [first, last):
        for every stage:
            for every span of SPAN elements: one loop, which LLVM vectorises; then its sums fold
            the folded spans fold; the row's own nodes are computed
        results are stored where they are computed

Every node is a pair of variables, m3 and r3; r3 is None where it is exact by structure. A row of a
`flat` program is any SPAN elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from refkernels.contexts.graph import Node
from refkernels.contexts.program import COLUMN, FULL, NUMBER, READ, REDUCTIONS, ROW, RowProgram

_RULES = {name: name for name in ("add", "multiply", "divide", "square", "maximum")}
_TRUTHS = {"is": "{}", "not": "not {}", "and": "{} & {}", "or": "{} | {}"}
_FOLDS = {"sum": ("fold", "fold"), "max": ("fold_largest",) * 2, "pivot": ("fold_largest",)}


@dataclass
class Writer:
    """The lines of a kernel, and the scratch arrays that it is called with, in order."""

    program: RowProgram
    exact: set[Node]  # exact numbers
    lines: list[str] = field(default_factory=list)
    scratch: dict[str, str] = field(default_factory=dict)  # name: kept, span or spans

    def __post_init__(self) -> None:
        program = self.program
        used = program.numbers() + [t for t in program.nodes if program.level[t] != NUMBER]
        self.index = {node: number for number, node in enumerate(used)}
        self.exact = set(self.exact) | {t for t in program.nodes if t.op in ("array", "pivot")}
        for node in program.nodes:
            moved = node.op in ("negative", "absolute", "broadcast", "pick")
            if moved and program.level[node] != NUMBER and node.operands[0] in self.exact:
                self.exact.add(node)

    def source(self) -> str:
        """The whole body for `loading.kernel`."""
        for stage in self.program.stages:
            self._row_nodes(stage)
            self._loop(stage)
        arrays = [f"x{index}" for index in self.program.reads]
        outputs = [f"{part}{k}" for k in range(len(self.program.outputs)) for part in "yq"]
        names = ["rows", "width", "size", "numbers", *arrays, *self.scratch, *outputs]
        head = [f"def kernel({', '.join(names)}):", "    full_width()", "    distinct()"]
        for number, node in enumerate(self.program.numbers()):
            m, r = self._names(node)
            head.append(f"    {m} = numbers[{number}, 0]")
            if r != "None":
                head.append(f"    {r} = numbers[{number}, 1]")
        head += [
            "    for i in range(rows):",
            "        base = i * width",
            "        n = min(width, size - base)",
            "        growth = height(n) * U",
            "        spans = (n + SPAN - 1) // SPAN",
        ]
        return "\n".join([*head, *self.lines, ""])

    # --- a stage -----------------------------------------------------------------------------

    def _row_nodes(self, stage: int) -> None:
        """The row's own nodes that need no later loop."""
        for node in self.program.nodes:
            in_stage = self.program.level[node] == ROW and self.program.stage[node] == stage
            if in_stage and node.op == "pick":
                self._pick(node, stage)
            elif in_stage and not self._reduces(node):
                self._put(8, self._statement(node, "i"))
        for number, output in enumerate(self.program.outputs):
            if self.program.level[output] == ROW and self.program.stage[output] == stage:
                self._put(8, f"y{number}[i], q{number}[i] = settled({self._pair(output)})")

    def _pick(self, node: Node, stage: int) -> None:
        """The nodes of a loop, computed for one element."""
        (operand,) = node.operands
        self._put(8, f"at = x{node.option}[i] + (n if x{node.option}[i] < 0 else 0)")
        nodes = self.program.loop([operand], stage)
        self._put(8, *(self._statement(part, "at", stage) for part in nodes))
        (m, r), (a, p) = self._names(node), self._names(operand)
        self._put(8, f"{m} = {a}" + ("" if r == "None" else f"; {r} = {p}"))

    def _reduces(self, node: Node) -> bool:
        levels = self.program.level
        return node.op in REDUCTIONS and levels[node.operands[0]] in (COLUMN, FULL)

    def _loop(self, stage: int) -> None:
        reductions = [node for node in self.program.reductions(stage) if self._reduces(node)]
        wanted = self.program.wanted(stage)
        nodes = self.program.loop(wanted, stage)
        if not nodes:
            return
        self._put(8, "for span in range(spans):")
        self._put(12, "start = span * SPAN", "stop = min(start + SPAN, n)", "size_ = stop - start")
        body = [self._statement(node, "j", stage) for node in nodes]
        for node in reductions:
            body += self._terms_of(node)
        body += self._stores(stage)
        self._slices(body)
        self._put(12, "for j in range(size_):")
        self._put(16, *body)
        for node in reductions:
            for part, fold in zip(self._strips(node), _FOLDS[node.op], strict=True):
                self._put(12, f"{part}s[span] = {fold}({part}[:size_])")
        for node in reductions:
            self._fold(node)

    def _slices(self, body: Iterable[str]) -> None:
        """The parts of the arrays that the loop's lines name, as x0_ and so on."""
        text = "\n".join(body)
        everywhere = "base + start : base + stop"
        for index, level in self.program.reads.items():
            if f"x{index}_[" in text:
                section = "start:stop" if level == COLUMN else everywhere
                self._put(12, f"x{index}_ = x{index}[{section}]")
        for name, kind in self.scratch.items():
            if f"{name}_[" in text:
                section = "start:stop" if kind == "kept" else ":size_"
                self._put(12, f"{name}_ = {name}[{section}]")
        for number, output in enumerate(self.program.outputs):
            if self.program.level[output] == FULL and f"y{number}_[" in text:
                self._put(12, *(f"{part}{number}_ = {part}{number}[{everywhere}]" for part in "yq"))

    def _stores(self, stage: int) -> list[str]:
        program = self.program
        lines = []
        for node in program.kept:
            if program.stage[node] == stage:
                m, r = self._names(node)
                lines.append(f"{self._scratch(f'k{m}', 'kept')}_[j] = {m}")
                if r != "None":
                    lines.append(f"{self._scratch(f'k{r}', 'kept')}_[j] = {r}")
        for number, output in enumerate(program.outputs):
            if program.level[output] == FULL and program.stage[output] == stage:
                lines.append(f"y{number}_[j], q{number}_[j] = settled({self._pair(output)})")
        return lines

    # --- reductions --------------------------------------------------------------------------

    def _strips(self, node: Node) -> list[str]:
        """The names of a reduction's nodes; with an s those of its spans."""
        names = [f"s{self.index[node]}{part}" for part in "ab"[: len(_FOLDS[node.op])]]
        for name in names:
            self._scratch(name, "span")
            self._scratch(f"{name}s", "spans")
        return names

    def _terms_of(self, node: Node) -> list[str]:
        strips = [f"{name}_[j]" for name in self._strips(node)]
        m, r = self._names(node.operands[0])
        match node.op:
            case "sum":
                return [f"{strips[0]} = {m}", f"{strips[1]} = term({m}, {r}, growth)"]
            case "max":
                return [f"{strips[0]}, {strips[1]} = ends({m}, {r})"]
            case _:
                return [f"{strips[0]} = finite({m}, {r})"]

    def _fold(self, node: Node) -> None:
        folded = [
            f"{fold}({name}s[:spans])"
            for name, fold in zip(self._strips(node), _FOLDS[node.op], strict=True)
        ]
        m, r = self._names(node)
        if node.op == "pivot":
            self._put(8, f"{m} = {folded[0]}")
        else:
            rule = "total" if node.op == "sum" else "between"
            self._put(8, f"{m}, {r} = {rule}({', '.join(folded)})")

    def _statement(self, node: Node, at: str, stage: int | None = None) -> str:
        """The line that computes a node: at j of a loop's slices, at row i, or at a pick."""
        m, r = self._names(node)
        pairs = [self._pair(operand) for operand in node.operands]
        part = "_" if at == "j" else ""
        if stage is not None and node in self.program.kept and self.program.stage[node] < stage:
            read = f"{m} = k{m}{part}[{at}]"
            return read if r == "None" else f"{read}; {r} = k{r}{part}[{at}]"
        if node.op in READ:
            full = at == "at" and self.program.level[node] == FULL
            value = f"x{node.option}{part}[{'base + ' * full}{at}]"
            return f"{m} = np.float64({value})" if node.op == "array" else f"{m} = {value}"
        if node.op in _RULES:
            return f"{m}, {r} = {node.op}({', '.join(pairs)})"
        if node.op in ("less", "not less"):
            return f"{m} = less({', '.join(pairs)})[{int(node.op == 'not less')}]"
        if node.op in _TRUTHS:
            names = (self._names(operand)[0] for operand in node.operands)
            return f"{m} = {_TRUTHS[node.op].format(*names)}"
        if node.op == "where":
            yes, no = (self._names(operand)[0] for operand in node.operands[:2])
            return f"{m}, {r} = choose({yes}, {no}, {', '.join(pairs[2:])})"
        if node.op == "function":
            return f"{m}, {r} = functions.{node.option}({pairs[0]})"
        (a, p) = self._names(node.operands[0])
        moved = {"negative": f"-{a}", "absolute": f"abs({a})", "pivot": f"finite({a}, {p})"}
        exact = r == "None"
        return f"{m} = {moved.get(node.op, a)}" + ("" if exact else f"; {r} = {p}")

    def _names(self, node: Node) -> tuple[str, str]:
        number = self.index[node]
        return f"m{number}", "None" if node in self.exact else f"r{number}"

    def _pair(self, node: Node) -> str:
        return ", ".join(self._names(node))

    def _scratch(self, name: str, kind: str) -> str:
        self.scratch[name] = kind
        return name

    def _put(self, indent: int, *lines: str) -> None:
        self.lines += [" " * indent + line for line in lines]
