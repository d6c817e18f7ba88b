// A profile's form: checks while one types (nothing is stored), shows the difference before it is
// saved, saves, finds settings. The bar at the foot always says how many are changed. Everything from
// the desk is written as text. Without this module the form works by its buttons.

import { keep, say } from "./toast.js";
import { follow as followTry, tryNow } from "./tried.js";

const form = document.getElementById("profile-form");
const PAUSE = 400; // milliseconds without typing before a check
const STATES = ["changed", "edited"]; // words that find what was changed and is not saved
const JSON_HEADERS = {
  Accept: "application/json",
  "X-Torra-CSRF": document.documentElement.dataset.csrf ?? "",
};

let timer = 0;
let newest = 0; // number of the newest check: an older answer that comes later is not shown

function part(tag, text, options = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(options)) element.setAttribute(name, value);
  return element;
}

function table(caption, heads, rows) {
  const made = part("table", undefined, { class: "dense stack changes-table" });
  made.append(part("caption", caption));
  const head = part("tr");
  for (const word of heads) head.append(part("th", word, { scope: "col" }));
  const top = part("thead");
  top.append(head);
  const body = part("tbody");
  for (const cells of rows) {
    const line = part("tr");
    cells.forEach((cell, place) => {
      const element = place ? part("td", undefined, { "data-label": heads[place] }) : part("th", undefined, { scope: "row" });
      element.append(cell instanceof Node ? cell : document.createTextNode(String(cell)));
      line.append(element);
    });
    body.append(line);
  }
  made.append(top, body);
  const region = part("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": caption });
  region.append(made);
  return region;
}

function named(row) {
  const made = part("span", `${row.title} `);
  made.append(part("code", row.place));
  return made;
}

function changeTable(rows, caption) {
  return table(caption, ["Setting", "Before", "After", "Default", "Who may"], rows.map((row) => [
    named(row), row.before, row.after, row.default,
    part("span", row.mark, { class: "mark", "data-tone": row.tone }),
  ]));
}

// --- checking ------------------------------------------------------------------------------------

function fields() {
  return [...form.querySelectorAll(".setting :is(input, select, textarea)")];
}

const first = new Map(fields().map((field) => [field, initial(field)]));

function initial(field) {
  if (field.tagName !== "SELECT") return field.defaultValue;
  return [...field.options].find((option) => option.defaultSelected)?.value ?? field.value;
}

function markEdited() {
  for (const field of fields()) {
    const mark = field.closest(".setting").querySelector(".edited");
    if (field.value !== first.get(field)) mark.hidden = false;
    else if (!("kept" in mark.dataset)) mark.hidden = true;
  }
  const count = changed();
  tellBar(count ? `${count} changed` : "Nothing changed");
}

function changed() {
  return form.querySelectorAll(".setting .edited:not([hidden])").length;
}

function tellBar(text) {
  write("bar-state", text);
  for (const save of form.querySelectorAll("button.save")) {
    if (changed()) save.removeAttribute("aria-disabled");
    else save.setAttribute("aria-disabled", "true");
  }
}

// The difference stands above the settings: it is shown there, and the focus goes to it.
function reveal() {
  const place = document.getElementById("outcome");
  delete place.dataset.quiet;
  const title = document.getElementById("outcome-title");
  title.focus({ preventScroll: true });
  place.scrollIntoView({ block: "start" });
}

function showFaults(faults) {
  const byName = new Map(faults.map((fault) => [fault.name, fault.text]));
  for (const row of form.querySelectorAll(".setting")) {
    const text = byName.get(row.dataset.name);
    const field = row.querySelector("input, select, textarea");
    const place = row.querySelector("[data-fault]");
    place.hidden = !text;
    place.textContent = text ? `✕ ${text}` : "";
    if (text) {
      field.setAttribute("aria-invalid", "true");
      row.closest("details.section")?.setAttribute("open", "");
    } else field.removeAttribute("aria-invalid");
  }
}

function write(id, text) {
  const element = document.getElementById(id);
  if (element && element.textContent !== text) element.textContent = text;
}

function showCheck(told) {
  const loose = told.changes.filter((change) => change.way === "loosens");
  showFaults([...loose.map((change) => ({ name: change.place, text: change.mark })), ...told.faults]);
  const shown = [];
  for (const fault of told.faults) shown.push(part("p", `✕ ${fault.text}`, { class: "fault" }));
  for (const text of told.warnings) shown.push(part("p", `◐ ${text}`, { class: "skipnote" }));
  if (told.changes.length) shown.push(changeTable(told.changes, "Before and after"));
  if (told.refused) shown.push(part("p", `✕ ${told.refused}`, { class: "fault" }));
  if (told.command) shown.push(part("pre", told.command, { tabindex: "0" }), part("p", form.dataset.then, { class: "muted" }));
  document.getElementById("check-told").replaceChildren(...shown);
  const count = told.changes.length;
  if (told.faults.length) write("check-state", `✕ ${told.faults.length} to mend before it can be saved.`);
  else write("check-state", count ? `● ${count} changed.` : "Nothing differs from what is saved.");
  const more = told.faults.length ? `, ✕ ${told.faults.length} to mend` : told.refused ? ", ✕ not all may be saved here" : "";
  tellBar(count ? `${count} changed${more}` : told.faults.length ? more.slice(2) : "Nothing changed");
}

async function post(url) {
  const answer = await fetch(url, {
    method: "POST", headers: JSON_HEADERS, redirect: "error",
    body: new URLSearchParams(new FormData(form)),
  });
  const told = await answer.json();
  return { code: answer.status, ok: answer.ok, told };
}

async function check() {
  clearTimeout(timer);
  newest += 1;
  const mine = newest;
  markEdited();
  try {
    const { ok, told } = await post(form.dataset.check);
    if (mine !== newest) return;
    if (ok) showCheck(told);
    else write("check-state", `✕ not checked: ${told.reason || told.advice || "the desk refused"}`);
  } catch {
    if (mine === newest) write("check-state", "✕ not checked: the desk could not be reached.");
  }
}

// --- saving --------------------------------------------------------------------------------------

async function save(button) {
  if (!changed()) return tellBar("Nothing changed yet");
  button.disabled = true;
  try {
    const { code, ok, told } = await post(form.dataset.save);
    if (ok) {
      keep(told.reason, told.status === "done" ? "done" : "running");
      location.assign(form.dataset.page);
      return;
    }
    say(`Not saved. ${why(code, told)}`, "alert");
    refused(code, told);
    reveal();
  } catch {
    say("The desk could not be reached. Load the page again to see what is saved.", "alert");
  }
  button.disabled = false;
}

// Returns why a save was refused; the command that the reason ends with stands by itself.
function why(code, told) {
  const reason = told.reason || told.advice || String(code);
  return told.command ? `${reason.split(`: ${told.command}`)[0]}.` : reason;
}

function refused(code, told) {
  showFaults(told.faults ?? []);
  const shown = [part("p", `✕ ${why(code, told)}`, { class: "fault" })];
  if (told.command) shown.push(part("pre", told.command, { tabindex: "0" }), part("p", form.dataset.then, { class: "muted" }));
  if (told.changes?.length) {
    shown.push(changeTable(told.changes, told.outcome === "conflict" ? "What changed meanwhile" : "What you asked for"));
  }
  if (told.outcome === "conflict") shown.push(part("a", "Load the page again", { href: form.dataset.page }));
  document.getElementById("check-told").replaceChildren(...shown);
  write("check-state", "✕ Not saved.");
}

// --- the filter ----------------------------------------------------------------------------------

function filter(wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const section of form.querySelectorAll(".section")) {
    let some = 0;
    for (const row of section.querySelectorAll(".setting")) {
      const text = `${row.dataset.name} ${row.textContent}`.toLowerCase();
      const fits = words.every((word) => (STATES.includes(word) ? isChanged(row) : text.includes(word)));
      row.hidden = !fits;
      some += fits;
    }
    section.hidden = !some;
    if (words.length) section.open = some > 0;
    shown += some;
  }
  const most = mostImportant(words);
  const told = `${shown} ${shown === 1 ? "setting" : "settings"}`;
  write("filter-told", words.length ? `${told}${most ? `, and ${most} of the ten above` : ""}` : "");
}

function isChanged(row) {
  return !row.querySelector(".edited").hidden;
}

// The ten that matter most are never hidden: how many of them fit is told.
function mostImportant(words) {
  const rows = [...form.querySelectorAll(".main-setting")];
  return rows.filter((row) => {
    const text = `${row.dataset.name} ${row.textContent}`.toLowerCase();
    return words.every((word) => (STATES.includes(word) ? isChanged(row) : text.includes(word)));
  }).length;
}

if (form) {
  form.noValidate = true;
  for (const mark of form.querySelectorAll(".edited:not([hidden])")) mark.dataset.kept = "";
  form.addEventListener("input", (event) => {
    if (event.target.id === "filter") return filter(event.target.value);
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = event.submitter;
    if (document.activeElement?.id === "filter") return;
    if (button?.classList.contains("save")) save(button);
    else if (button && "try" in button.dataset) tryNow(form, button);
    else check().then(reveal);
  });
  markEdited();
  const going = document.getElementById("try-state")?.dataset.job;
  if (going) followTry(form, going);
}
