"""The page's script, in a browser where there is one."""

import re
import shutil
import subprocess

import pytest

from refkernels.reporting.measure.pages import TEMPLATES

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


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_link_to_a_row_opens_its_table_and_ends_at_the_row(tmp_path):
    assert CHROMIUM is not None
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(js=(TEMPLATES / "report.js").read_text("utf-8")), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,600"]
    options += ["--virtual-time-budget=3000", f"--user-data-dir={tmp_path / 'profile'}"]
    run = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    title = re.search(r"<title>\[(.+),(\d+)\]</title>", run.stdout)
    assert title, run.stdout[-500:] + run.stderr[-500:]
    assert 0 <= float(title[1]) < 600
    assert int(title[2]) == 4  # a cell for each head, and one for its link
