"""Writes docs/causes.md and docs/causes.zh.md, the lists of the causes that an explanation names.

python tools/write_causes.py
"""

import re
from pathlib import Path

from refkernels.reporting.causes import CAUSES
from refkernels.reporting.writing import write_file

FOLDER = Path(__file__).parent.parent / "docs"
NAMES = {"en": "causes.md", "zh": "causes.zh.md"}
HEADS = {
    "en": """# The causes that an explanation can name

`refkernels explain`, `refkernels.explain` and case files say these identifiers; they are stable, so
scripts and threads may rely on them. A verdict (rounding, or not) never depends on the cause, and a
cause is named only on evidence:

- **proven**: a model of the algorithm, run in the working precision, or the correct rounding of the
  other question gives the kernel's bits in every element; how many they are is printed.
- **matched**: as the answer to another question the output is nothing but rounding (inside its
  bound, and no worse than a few times the plain algorithm); as the answer to what was asked it is
  not.
- **consistent**: the pattern and the size of the errors fit, and nothing else was found. No proof.

Where two causes fit equally, both are named; where none fits, the explanation says so, and shows
what was ruled out. The Chinese list is [causes.zh.md](causes.zh.md).

| identifier | the kernel ... | what to do |
|---|---|---|
""",
    "zh": """# 解释所能指出的原因

`refkernels explain`、`refkernels.explain` 和案例文件使用下列标识符；
它们保持不变，脚本和讨论可以放心引用。
结论（是否属于舍入误差）与原因无关；指出原因必须有证据：

- **已证明**：在工作精度下运行的算法模型，或另一个问题的正确舍入结果，
  逐位重现了每个元素；重现的个数会一并给出。
- **相符**：若把输出当作另一个问题的答案，其误差只是舍入误差
  （在误差界之内，且不比朴素算法差几倍以上）；当作实际所求问题的答案则不是。
- **可能**：误差的规律和大小都符合，也没有找到其他原因，但未经证明。

若有两个原因同样符合，则一并指出；若都不符合，则说明原因未明，并列出已排除的原因。
英文版见 [causes.md](causes.md)。

| 标识符 | 该算子…… | 如何处理 |
|---|---|---|
""",
}


def page(lang: str) -> str:
    """The page in one language."""
    rows = []
    for name, cause in CAUSES.items():
        says = re.sub(r"\{(\w+)[^}]*\}", r"*\1*", cause.says[lang])
        rows.append(f"| `{name}` | {says} | {cause.todo[lang]} |")
    return HEADS[lang] + "\n".join(rows) + "\n"


def main() -> None:
    for lang, name in NAMES.items():
        print(write_file(FOLDER / name, page(lang)))


if __name__ == "__main__":
    main()
