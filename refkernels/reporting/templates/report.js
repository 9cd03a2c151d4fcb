(() => {
const all = (what, where = document) => [...where.querySelectorAll(what)];
const openTarget = () => {
  let place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let up = place; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
  const own = place.closest("details:not(.rows)");  // its line is above the place; a row is its own
  const land = () => (own || place).scrollIntoView();
  land();
  requestAnimationFrame(() => requestAnimationFrame(land));  // sections that came near have been laid out
};
addEventListener("hashchange", openTarget);
const form = document.getElementById("filter");
const findings = all(".f,.rows tbody tr");
const keys = ["s", "o", "d", "v"];
const idOf = element => element.id || element.querySelector(".body").id;
const heads = all("#matrix thead th");
const targets = Object.fromEntries(heads.map(({ dataset }) => [dataset.id || dataset.s, dataset.s]));
const levels = (document.body.dataset.levels || "").split(" ");
const setKeys = (element, id) => {
  const [s, o, , format, , word] = id.split("-");
  if (!word) return;
  const d = format.replace("f", "float"), v = levels.find(level => level.startsWith(word));
  Object.assign(element.dataset, { s: targets[s] || s, o, d, v });
};
let loss;
for (const element of findings) {
  setKeys(element, idOf(element));
  loss = element.dataset.e ??= loss;  // each is written where it is not the one before
}
if (form) {
  for (const element of all("#matrix tbody td")) element.dataset.s = heads[element.cellIndex].dataset.s;
  for (const element of all("#matrix td a")) {
    setKeys(element, element.hash.slice(1));
    delete element.dataset.s;
    delete element.dataset.o;
  }
  for (const element of all("#matrix td > span:not(.none)")) {
    const [, brain, bits] = /^(b?)(\d+)/.exec(element.textContent) || [];
    element.dataset.d = `${brain ? "bfloat" : "float"}${bits}`;
    element.dataset.v = { vc: "correctly_rounded", vq: "uncertified", vd: "ill_conditioned" }[element.className] || "rounding";
  }
  const marked = all(".matrix [data-v]");
  for (const key of keys) {
    const values = new Set([...findings, ...all(`.matrix [data-${key}]`)].map(element => element.dataset[key]));
    values.delete(undefined);
    for (const value of [...values].sort()) form[key].add(new Option(value.replaceAll("_", " "), value));
  }
  findings.forEach((element, place) => { element.dataset.place = place; });
  let sorted = "";
  const apply = () => {
    const wanted = Object.fromEntries(keys.map(key => [key, form[key].value]));
    const fits = (element, names) => names.every(key => !wanted[key] || element.dataset[key] === wanted[key]);
    let shown = 0;
    for (const element of findings) shown += !(element.hidden = !fits(element, keys));
    for (const element of marked) element.hidden = !fits(element, ["d", "v"]);
    for (const element of all("#matrix [data-s]")) element.hidden = !fits(element, ["s"]);
    for (const element of all("#matrix tr[data-o]")) {
      const left = all("[data-v]", element).some(mark => !mark.hidden && !mark.parentElement.hidden);
      element.hidden = !fits(element, ["o"]) || ((wanted.d || wanted.v) && !left);
    }
    const by = form.sort.value;
    for (const list of by === sorted ? [] : all(".list")) {
      const entries = [...list.children];
      entries.sort((a, b) =>
        (by === "e" ? b.dataset.e - a.dataset.e : by ? a.dataset[by].localeCompare(b.dataset[by]) : 0)
        || a.dataset.place - b.dataset.place);
      list.append(...entries);
    }
    sorted = by;
    if (keys.some(key => wanted[key])) for (const element of all(".rows")) element.open = true;
    form.querySelector("output").textContent = `${shown} ` + document.body.dataset.shown;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  apply();
}
const text = element => element.textContent.trim().replace(/\s+/g, " ");
const cell = value => value.replaceAll("|", "\\|").replaceAll("<", "&lt;");
// A long script lies beside the page; the file that holds them all is read on the first use.
let reading;
const scriptOf = async element => {
  const shown = element.querySelector("pre");
  if (shown || !element.querySelector("a[download]")) return shown && shown.textContent.trim();
  reading ||= new Promise(done => {
    const file = document.createElement("script");
    file.src = "scripts/scripts.js";
    file.onload = file.onerror = done;
    document.head.append(file);
  });
  await reading;
  return (window.refkernelsScripts || {})[idOf(element)]?.trim();
};
const listed = (who, what, pill, how, rows, script) =>
  [`**${cell(who)}: ${cell(what)}** (${pill}): ${cell(how)}`, "", "| | |", "|---|---|",
    ...rows.map(row => `| ${row.map(cell).join(" | ")} |`),
    ...(script ? ["", "```python", script, "```"] : []), ""].join("\n");
const markdown = async element => {
  if (element.cells) {
    const [glyph, what, who, ...shown] = [...element.cells].map(text);
    const heads = [...element.closest("table").tHead.rows[0].cells].map(text).slice(3);
    const how = (element.dataset.v || "").replaceAll("_", " ");
    return listed(who, what, glyph, how, heads.map((head, place) => [head, shown[place]]), await scriptOf(element));
  }
  const [pill, what, who, how] = [...element.firstElementChild.children].map(text);
  const rows = all("dl.kv > dt", element).map(name => [text(name), text(name.nextElementSibling)]);
  return listed(who, what, pill, how, rows, await scriptOf(element));
};
const linkInRow = row => {  // a row has its id only
  const link = document.createElement("a");
  link.className = "link";
  link.href = "#" + row.id;
  link.textContent = document.body.dataset.link;
  const last = document.createElement("td");
  last.append(link);
  if ("p" in row.dataset) {
    const script = document.createElement("a");
    script.href = `scripts/${row.id}.py`;
    script.download = "";
    script.textContent = document.body.dataset.script;
    last.append(" ", script);
  }
  while (row.cells.length < row.closest("table").tHead.rows[0].cells.length) row.insertCell();
  row.append(last);
  return link;
};
const addButton = element => {
  const button = document.createElement("button");
  button.textContent = document.body.dataset.copy;
  button.addEventListener("click", async () => {
    const written = await markdown(element);
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
  (element.cells ? linkInRow(element) : element.querySelector(".link")).after(button);
};
all(".f").forEach(addButton);
for (const rows of all(".rows"))
  rows.addEventListener("toggle", () => all("tbody tr", rows).forEach(addButton), { once: true });
openTarget();
})();
