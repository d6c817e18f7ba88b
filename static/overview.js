// The overview's filter and order: hides the symbols that do not have every word that is typed, and
// puts them in the desk's order of urgency as it changes, unless somebody is in the middle of it.

const list = document.getElementById("symbols");
const field = document.querySelector("[data-filter]");
const told = document.getElementById("filtered");

function rows() {
  return list ? [...list.querySelectorAll("[data-row]")] : [];
}

function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows()) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  const all = rows().length;
  const said = words.length ? `${shown} of ${all} symbols` : "";
  if (told.textContent !== said) told.textContent = said;
}

function order(keys) {
  if (!list || !keys || list.contains(document.activeElement) || list.matches(":hover")) return;
  const found = new Map(rows().map((row) => [row.dataset.key, row]));
  const wanted = keys.map((key) => found.get(key)).filter(Boolean);
  if (wanted.every((row, place) => rows()[place] === row)) return;
  list.append(...wanted);
}

if (list && field) {
  field.closest("label").hidden = false;
  field.addEventListener("input", filter);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !field.value) return;
    field.value = "";
    filter();
  });
}
document.addEventListener("torra:data", (event) => {
  order(event.detail.order);
  if (field?.value) filter();
});
