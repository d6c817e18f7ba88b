// Loads the parts of a page anew when the desk's answer has another version than the page: a
// proposal that was decided elsewhere or has expired, a signal that took a step. Figures are live.js's
// part; this one changes what is there at all. What a person has typed or chosen stays, and so does
// the focus. A countdown marked data-expiry asks at once when it is over, and while one runs the
// figures are asked for at the page's own pace: a price moves without the desk telling.

const main = document.getElementById("main");
const parts = () => document.querySelectorAll("[data-part]");

const versionOf = (page) => page.querySelector("[data-version]")?.dataset.version;

let version = versionOf(document);
let loading = false;

export async function renew() {
  if (loading) return;
  loading = true;
  try {
    const fresh = await ownPage();
    if (!fresh) return;
    version = versionOf(fresh) ?? version;
    for (const part of parts()) exchange(part, fresh);
    document.dispatchEvent(new CustomEvent("torra:renewed"));
  } finally {
    loading = false;
  }
}

// Returns this page as the desk shows it now: loaded by the browser as a document, in which no
// script runs, never made from text here. Null when the desk does not answer, which live.js tells.
function ownPage() {
  return new Promise((resolve) => {
    const asked = new XMLHttpRequest();
    asked.open("GET", location.href.split("#")[0]);
    asked.responseType = "document";
    asked.setRequestHeader("Accept", "text/html");
    asked.timeout = 10000;
    asked.onloadend = () => resolve(asked.status === 200 ? asked.response : null);
    asked.send();
  });
}

function exchange(part, fresh) {
  const other = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
  if (!other) return;
  const kept = typed(part);
  const focused = part.contains(document.activeElement) ? place(document.activeElement) : null;
  const next = document.importNode(other, true);
  const seen = String(performance.now());
  for (const element of next.querySelectorAll("[data-countdown]")) element.dataset.seen = seen;
  part.replaceWith(next);
  restore(next, kept);
  if (focused) (next.querySelector(focused) ?? main).focus({ preventScroll: true });
}

function typed(part) {
  const kept = [];
  for (const field of part.querySelectorAll("input, select, textarea, details")) {
    const where = place(field);
    if (!where || field.type === "hidden") continue;
    if (field.localName === "details") kept.push([where, "open", field.open]);
    else if (field.type === "radio" || field.type === "checkbox") {
      kept.push([where, "checked", field.checked]);
    } else kept.push([where, "value", field.value]);
  }
  return kept;
}

function restore(part, kept) {
  for (const [where, name, value] of kept) {
    const field = part.querySelector(where);
    if (field) field[name] = value;
  }
}

function place(element) {
  return element.id ? `#${CSS.escape(element.id)}` : null;
}

function lookAtExpiry() {
  for (const element of document.querySelectorAll("[data-expiry]")) {
    const since = Number(element.dataset.seen ?? 0);
    const left = Number(element.dataset.countdown) - (performance.now() - since) / 1000;
    if (left > 0 || element.dataset.over) continue;
    element.dataset.over = "1";
    for (const form of document.querySelectorAll("[data-until-expiry]")) form.hidden = true;
    renew();
  }
}

function askForPrices() {
  if (!document.querySelector("[data-expiry]")) return;
  document.dispatchEvent(new CustomEvent("torra:changed", { detail: { what: "price" } }));
}

document.addEventListener("torra:data", (event) => {
  const told = event.detail?.version;
  if (told !== undefined && told !== version) renew();
});
document.addEventListener("torra:command", () => renew());
setInterval(lookAtExpiry, 250);
setInterval(askForPrices, Number(main.dataset.liveSeconds) * 1000);
