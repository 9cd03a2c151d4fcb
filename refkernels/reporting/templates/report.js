(() => {
const all = (what, where = document) => [...where.querySelectorAll(what)];
const opened = () => {
  let place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let up = place; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
  const own = place.closest("details");
  (own && own.contains(place) ? own : place).scrollIntoView();
};
addEventListener("hashchange", opened);
const form = document.getElementById("filter");
const found = all(".f,.rows tbody tr");
const keys = ["s", "o", "d", "v"];
const idOf = one => one.id || one.querySelector(".body").id;
const named = (one, id) => {
  const parts = id.split("-");
  if (parts.length === 6) keys.forEach((key, place) => { one.dataset[key] = parts[[0, 1, 3, 5][place]]; });
};
for (const one of found) named(one, idOf(one));
if (form) {
  const seats = all("#matrix thead th").map(head => head.dataset.s);
  for (const one of all("#matrix tbody td")) one.dataset.s = seats[one.cellIndex];
  for (const one of all("#matrix td a")) {
    named(one, one.hash.slice(1));
    delete one.dataset.s;
    delete one.dataset.o;
  }
  for (const one of all("#matrix td > span:not(.none)")) {
    const [, brain, bits] = /^(b?)(\d+)/.exec(one.textContent) || [];
    one.dataset.d = `${brain ? "bfloat" : "float"}${bits}`;
    one.dataset.v = one.className === "v-correct" ? "correctly_rounded" : one.className.slice(2) || "rounding";
  }
  const marked = all(".matrix [data-v]");
  for (const key of keys) {
    const values = new Set([...found, ...all(`.matrix [data-${key}]`)].map(one => one.dataset[key]));
    values.delete(undefined);
    for (const value of [...values].sort()) form[key].add(new Option(value.replaceAll("_", " "), value));
  }
  found.forEach((one, place) => { one.dataset.place = place; });
  let sorted = "";
  const apply = () => {
    const want = Object.fromEntries(keys.map(key => [key, form[key].value]));
    const fits = (one, some) => some.every(key => !want[key] || one.dataset[key] === want[key]);
    let shown = 0;
    for (const one of found) shown += !(one.hidden = !fits(one, keys));
    for (const one of marked) one.hidden = !fits(one, ["d", "v"]);
    for (const one of all("#matrix [data-s]")) one.hidden = !fits(one, ["s"]);
    for (const one of all("#matrix tr[data-o]")) {
      const left = all("[data-v]", one).some(mark => !mark.hidden && !mark.parentElement.hidden);
      one.hidden = !fits(one, ["o"]) || ((want.d || want.v) && !left);
    }
    const by = form.sort.value;
    for (const list of by === sorted ? [] : all(".list")) {
      const some = [...list.children];
      some.sort((a, b) =>
        (by === "e" ? b.dataset.e - a.dataset.e : by ? a.dataset[by].localeCompare(b.dataset[by]) : 0)
        || a.dataset.place - b.dataset.place);
      list.append(...some);
    }
    sorted = by;
    if (keys.some(key => want[key])) for (const one of all(".rows")) one.open = true;
    form.querySelector("output").textContent = `${shown} ` + document.body.dataset.shown;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  apply();
}
const text = one => one.textContent.trim().replace(/\s+/g, " ");
const cell = value => value.replaceAll("|", "\\|").replaceAll("<", "&lt;");
const listed = (who, what, pill, how, rows, script) =>
  [`**${cell(who)}: ${cell(what)}** (${pill}): ${cell(how)}`, "", "| | |", "|---|---|",
    ...rows.map(row => `| ${row.map(cell).join(" | ")} |`),
    ...(script ? ["", "```python", script.textContent.trim(), "```"] : []), ""].join("\n");
const markdown = one => {
  if (one.cells) {
    const [glyph, what, who, ...shown] = [...one.cells].map(text);
    const heads = [...one.closest("table").tHead.rows[0].cells].map(text).slice(3);
    const how = (one.dataset.v || "").replaceAll("_", " ");
    return listed(who, what, glyph, how, heads.map((head, place) => [head, shown[place]]));
  }
  const [pill, what, who, how] = [...one.firstElementChild.children].map(text);
  const rows = all("dl.kv > dt", one).map(name => [text(name), text(name.nextElementSibling)]);
  return listed(who, what, pill, how, rows, one.querySelector("pre"));
};
for (const one of found) {
  let link = one.querySelector(".link");
  if (!link) {  // a row, which has its id only
    link = document.createElement("a");
    link.className = "link";
    link.href = "#" + one.id;
    link.textContent = document.body.dataset.link;
    const last = document.createElement("td");
    last.append(link);
    while (one.cells.length < one.closest("table").tHead.rows[0].cells.length) one.insertCell();
    one.append(last);
  }
  const button = document.createElement("button");
  button.textContent = document.body.dataset.copy;
  button.addEventListener("click", async () => {
    const written = markdown(one);
    try { await navigator.clipboard.writeText(written); } catch {
      const area = document.createElement("textarea");
      area.value = written;
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = document.body.dataset.copied;
  });
  link.after(button);
}
opened();
})();
