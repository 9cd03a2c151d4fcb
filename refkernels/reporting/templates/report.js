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
const found = all(".f");
if (form) {
  const keys = ["s", "o", "d", "v"];
  const marked = all(".matrix [data-v]");
  for (const key of keys) {
    const values = new Set([...found, ...all(`.matrix [data-${key}]`)].map(one => one.dataset[key]));
    values.delete(undefined);
    for (const value of [...values].sort()) form[key].add(new Option(value.replaceAll("_", " "), value));
  }
  found.forEach((one, place) => { one.dataset.place = place; });
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
    for (const list of all(".list")) {
      const some = [...list.children];
      some.sort((a, b) =>
        (by === "e" ? b.dataset.e - a.dataset.e : by ? a.dataset[by].localeCompare(b.dataset[by]) : 0)
        || a.dataset.place - b.dataset.place);
      list.append(...some);
    }
    if (keys.some(key => want[key])) for (const one of all(".edges")) one.open = true;
    form.querySelector("output").textContent = `${shown} ` + document.body.dataset.shown;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  apply();
}
const text = one => one.textContent.trim().replace(/\s+/g, " ");
const markdown = one => {
  const [pill, what, who, how] = [...one.firstElementChild.children].map(text);
  const rows = all("dl.kv > dt", one).map(name => [text(name), text(name.nextElementSibling)]);
  const script = one.querySelector("pre");
  const cell = value => value.replaceAll("|", "\\|").replaceAll("<", "&lt;");
  return [`**${cell(who)}: ${cell(what)}** (${pill}): ${cell(how)}`, "", "| | |", "|---|---|",
    ...rows.map(row => `| ${row.map(cell).join(" | ")} |`),
    ...(script ? ["", "```python", script.textContent.trim(), "```"] : []), ""].join("\n");
};
for (const one of all("details.f")) {
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
  one.querySelector(".link").after(button);
}
opened();
})();
