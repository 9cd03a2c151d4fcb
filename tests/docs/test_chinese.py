"""Chinese texts use a native engineer's words: what was once corrected does not come back."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = {  # the form refused: an example of it, what is said instead
    r"大参数": ("大参数", "大自变量"),
    r"模 ?π ?约简|参数约简": ("模 π 约简", "范围归约"),
    r"参数应?以更宽": ("参数应以更宽的格式计算", "自变量应以更宽的格式计算"),
    r"参数较小": ("保持参数较小", "让自变量保持较小"),
    r"误差 ?[／/] ?界": ("误差／界", "误差/误差界"),
    r"由?输入推出的": ("请用由输入推出的容差", "请使用由输入推导的容差"),
    r"没有错误：": ("没有错误：请用", "无需修复：请使用"),
    r"以偏置为初值": ("torch 累加器以偏置为初值", "torch 以偏置作为累加器初值"),
    r"个元素中有": ("在 24,576 个元素中有", "共 24,576 个元素，其中"),
    r"(\d|\}) ?[／/] ?[\d{][^ ]* ?个元素逐位相同": (
        "24,576 / 24,576 个元素逐位相同",
        "全部 24,576 个元素逐位相同",
    ),
    r"相消|对消": ("发生相消", "发生灾难性抵消"),
    r"冲刷|冲洗": ("次正规数冲刷为零", "将次正规数刷新为零"),
    r"次序": ("次序", "顺序"),
    r"(?<!抛出)(?<!引发)异常": ("没有异常", "没有不寻常之处"),  # an exception is another matter
    r"在此之前，?可": ("在此之前，可先", "临时规避：先"),
}


@pytest.mark.parametrize("form", WRONG)
def test_a_form_is_found_where_it_is_and_not_in_what_replaces_it(form: str) -> None:
    refused, wanted = WRONG[form]
    assert re.search(form, refused)
    assert not re.search(form, wanted)


def test_no_chinese_text_of_the_project_has_a_form_that_was_corrected() -> None:
    seen = 0
    for path in _files():
        for text in _texts(path):
            seen += len(re.findall(r"[一-鿿]", text))
            for form, (_, wanted) in WRONG.items():
                found = re.search(form, text)
                assert found is None, f"{path.relative_to(ROOT)}: {found[0]!r}, say {wanted!r}"
    assert seen > 20_000, seen


def test_no_line_of_a_chinese_page_ends_between_two_chinese_characters() -> None:
    """A browser would show the line's end as a space."""
    pages = [ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.zh.md"))]
    assert len(pages) >= 2
    for path in pages:
        prose = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
        found = re.search(r"[一-鿿，。；：、（）”]\n *[一-鿿（“]", prose)
        assert found is None, f"{path.name}: {found[0]!r}"


def _files() -> Iterator[Path]:
    yield ROOT / "README.zh.md"
    for folder in ("docs", "notebooks", "refkernels", "tools"):
        for kind in ("md", "py", "json", "ipynb", "j2", "js"):
            yield from (ROOT / folder).rglob(f"*.{kind}")


def _texts(path: Path) -> Iterator[str]:
    """The Chinese texts of a file, whole: literals joined as Python joins them, lines of Markdown
    as a reader does."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        found = [
            node.value
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    elif path.suffix in (".json", ".ipynb"):
        found = list(_strings(json.loads(text)))
    else:
        found = [text]
    for one in found:
        if re.search(r"[一-鿿]", one):
            yield re.sub(r"(?<=[一-鿿，。；：、])\n(?=[一-鿿])", "", one)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        if all(isinstance(part, str) for part in value):
            yield "".join(value)  # the lines of a notebook's cell
        else:
            for part in value:
                yield from _strings(part)
