// A profile's form: checks while one types (nothing is stored), shows the difference before it is
// saved, saves, finds settings. The bar at the foot always says how many are changed. What a check or
// a refused save says is made by the desk and put in its place here, beside the settings too. Without
// this module the form works by its buttons.

import { keep, say } from "./toast.js";
import { follow, tryNow } from "./tried.js";

const form = document.getElementById("profile-form");
const PAUSE = 400; // milliseconds without typing before a check
const STATES = ["changed", "edited"]; // words that find what was changed and is not saved

let timer = 0;
let newest = 0; // number of the newest check: an older answer that comes later is not shown

// Sends the form; returns what the desk shows of it, a document that the browser made.
function send(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address);
    request.responseType = "document";
    request.setRequestHeader("Accept", "text/html");
    request.setRequestHeader("X-Torra-CSRF", document.documentElement.dataset.csrf ?? "");
    request.setRequestHeader("X-Torra-Part", "outcome");
    request.onloadend = () => {
      const here = request.responseURL === new URL(address, location.href).href; // not the login
      if (here && request.response) resolve({ ok: request.status < 300, page: request.response });
      else reject(new Error(String(request.status)));
    };
    request.send(new URLSearchParams(new FormData(form)));
  });
}

function write(id, text) {
  const element = document.getElementById(id);
  if (element && element.textContent !== text) element.textContent = text;
}

// Returns what the desk says first, of the settings or of the command.
function reason(page) {
  const line = page.querySelector("#check-told .fault") ?? page.querySelector(".card p:not(.muted)");
  return line?.textContent.replace(/^✕ /, "") ?? "the desk refused";
}

// --- what is changed -----------------------------------------------------------------------------

function isEdited(field) {
  if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
  return !field.selectedOptions[0].defaultSelected;
}

function markEdited() {
  for (const field of form.querySelectorAll(".setting :is(input, select, textarea)")) {
    const mark = field.closest(".setting").querySelector(".edited");
    mark.hidden = !isEdited(field) && !("kept" in mark.dataset);
  }
  const count = changed();
  showBar(count ? `${count} changed` : "Nothing changed");
}

function changed() {
  return form.querySelectorAll(".setting .edited:not([hidden])").length;
}

function showBar(text) {
  write("bar-state", text);
  for (const button of form.querySelectorAll("button.save")) {
    if (changed()) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
  }
}

// --- checking and saving -------------------------------------------------------------------------

// Puts what the desk says of the settings in its place; returns whether it says anything of them.
function show(page) {
  const outcome = page.getElementById("outcome");
  if (!outcome) return false;
  const lines = [...outcome.querySelectorAll("[data-of]")].reverse(); // a fault comes before a mark
  mark(new Map(lines.map((line) => [line.dataset.of, line.dataset.says])));
  write("check-state", outcome.querySelector("#check-state").textContent);
  document.getElementById("check-told").replaceChildren(...outcome.querySelector("#check-told").childNodes);
  if (outcome.dataset.bar) showBar(outcome.dataset.bar);
  return true;
}

function mark(faults) {
  for (const row of form.querySelectorAll(".setting")) {
    const text = faults.get(row.dataset.name);
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

// The difference stands above the settings: it is shown there, and the focus goes to it.
function reveal() {
  const place = document.getElementById("outcome");
  delete place.dataset.quiet;
  document.getElementById("outcome-title").focus({ preventScroll: true });
  place.scrollIntoView({ block: "start" });
}

async function check() {
  clearTimeout(timer);
  newest += 1;
  const mine = newest;
  markEdited();
  try {
    const { page } = await send(form.dataset.check);
    if (mine === newest && !show(page)) write("check-state", `✕ not checked: ${reason(page)}`);
  } catch {
    if (mine === newest) write("check-state", "✕ not checked: the desk could not be reached.");
  }
}

async function save(button) {
  if (!changed()) return showBar("Nothing changed yet");
  button.disabled = true;
  try {
    const { ok, page } = await send(form.dataset.save);
    if (ok) {
      const { status } = page.querySelector("[data-status]").dataset;
      keep(reason(page), status === "done" ? "done" : "running");
      return location.assign(form.dataset.page);
    }
    say(`Not saved. ${reason(page)}`, "alert");
    if (!show(page)) write("check-state", `✕ Not saved. ${reason(page)}`);
    reveal();
  } catch {
    say("The desk could not be reached. Load the page again to see what is saved.", "alert");
  }
  button.disabled = false;
}

// --- the filter ----------------------------------------------------------------------------------

// Hides what does not fit; the ten that matter most are never hidden, but counted.
function filter(wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = new Set([...form.querySelectorAll(".setting")].filter((row) => fits(row, words)));
  for (const section of form.querySelectorAll(".section")) {
    const rows = [...section.querySelectorAll(".setting")];
    for (const row of rows) row.hidden = !fitting.has(row);
    section.hidden = rows.every((row) => row.hidden);
    if (words.length) section.open = !section.hidden;
  }
  const most = [...fitting].filter((row) => row.matches(".main-setting")).length;
  const shown = fitting.size - most;
  const text = `${shown} ${shown === 1 ? "setting" : "settings"}${most ? `, and ${most} of the ten above` : ""}`;
  write("filter-told", words.length ? text : "");
}

function fits(row, words) {
  const text = `${row.dataset.name} ${row.textContent}`.toLowerCase();
  const edited = !row.querySelector(".edited").hidden;
  return words.every((word) => (STATES.includes(word) ? edited : text.includes(word)));
}

if (form) {
  form.noValidate = true;
  for (const edited of form.querySelectorAll(".edited:not([hidden])")) edited.dataset.kept = "";
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
  if (going) follow(form, going);
}
