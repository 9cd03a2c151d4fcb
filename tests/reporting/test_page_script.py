"""The page's script, in a browser where there is one."""

import base64
import json
import re
import shutil
import subprocess
from urllib.parse import unquote

import pytest
import synthetic
from test_symptoms import bad
from waiting import HANGS

from refkernels.reporting.measure.findings import findings
from refkernels.reporting.measure.pages import Report
from refkernels.reporting.templating import TEMPLATES

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
PAGE = """<!DOCTYPE html><title></title><body>
<p style="height:2000px">
<details class=rows><summary>rows</summary><p style="height:3000px">
<table><thead><tr><th>a<th>b<th>c</thead><tbody class=list><tr id=row><td>1</table></details>
<p style="height:2000px">
<script>{js}</script><script>
const measure = () => {{
  const row = document.getElementById("row");
  document.title = JSON.stringify([row.getBoundingClientRect().top, row.cells.length]);
}};
const follow = () => {{ location.hash = "row"; setTimeout(measure, 500); }};
addEventListener("load", () => setTimeout(follow, 500));  // a link that is followed later
</script>"""


DUMP = """<script>
const rows = [...document.querySelectorAll(".f,.rows tbody tr")].map(element =>
  [element.id || element.querySelector(".body").id, element.dataset.s, element.dataset.o,
   element.dataset.d, element.dataset.v, element.dataset.e]);
const marks = [...document.querySelectorAll("#matrix td a")].map(element =>
  [element.hash.slice(1), element.dataset.d, element.dataset.v]);
document.title = btoa(encodeURIComponent(JSON.stringify([rows, marks])));
</script>"""
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


def title_of(page, folder):
    """The title that the page's scripts leave."""
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,600"]
    options += ["--virtual-time-budget=3000", f"--user-data-dir={folder / 'profile'}"]
    run = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=HANGS, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", run.stdout)
    assert title, run.stdout[-500:] + run.stderr[-500:]
    return title[1]


def test_a_link_to_a_row_opens_its_table_and_ends_at_the_row(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(js=(TEMPLATES / "report.js").read_text("utf-8")), "utf-8")
    top, cells = json.loads(title_of(page, tmp_path))
    assert 0 <= top < 600
    assert cells == 4  # a cell for each head, and one for its link


def test_the_script_reads_target_op_format_and_verdict_from_the_ids(tmp_path):
    """For targets and ops whose names an id holds, and for those that it does not."""
    targets = ("cpu", {}), ("cuda:0", {"allow_tf32": "0"}), ("cuda:0", {"allow_tf32": "1"})
    dtypes = "float64", "float32", "bfloat16"
    records = [
        {**bad(op, dtype=dtype, beyond=beyond), "device": device, "settings": settings}
        for (device, settings), dtype, beyond in zip(targets, dtypes, (4096, 4096, 7), strict=True)
        for op in ("sin", "my-op")
    ]
    report = Report.of(records, starmap=synthetic.undrawn)
    page = tmp_path / "page.html"
    page.write_text(report.html() + DUMP, "utf-8")
    rows, marks = json.loads(unquote(base64.b64decode(title_of(page, tmp_path)).decode()))
    known = findings(report.study)
    assert len(known) == len(records)
    loss = {finding.id: f"{100 * finding.loss:.2g}" for finding in known}
    assert {row[0]: row[1:] for row in rows} == {
        each.id: [each.subject, each.op, each.dtype, each.verdict.name, loss[each.id]]
        for each in known
    }
    dtype = {finding.id: [finding.dtype, finding.verdict.name] for finding in known}
    assert {mark[0]: mark[1:] for mark in marks} == dtype
