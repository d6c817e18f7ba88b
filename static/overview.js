// The overview's filter and order: hides the symbols that do not have every word that is typed, and
// lets their order stand while somebody is in the middle of it.

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

// Puts the rows of the desk's answer in the order of the page that somebody is in the middle of.
function keepOrder(fresh) {
  if (!list?.contains(document.activeElement) && !list?.matches(":hover")) return;
  const next = fresh.getElementById(list.id);
  const found = new Map([...(next?.querySelectorAll("[data-row]") ?? [])].map((row) => [row.id, row]));
  next?.prepend(...rows().map((row) => found.get(row.id)).filter(Boolean));
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
document.addEventListener("torra:fresh", (event) => keepOrder(event.detail));
document.addEventListener("torra:renewed", () => {
  if (field?.value) filter();
});
