// Keeps the figures of a page up to date: asks the desk for the page's cells when it tells that
// something changed, and every few seconds while it tells nothing, and writes them as text and
// attributes. Says so when the desk does not answer, counts down to the next tick, and stops all of
// it while updates are frozen. A desk that is silent is of unknown state, and the strip says so; a
// session that has ended ends the asking. Without this module a page shows the figures of its load.

import { isOut, leave } from "./session.js";

const main = document.getElementById("main");
const state = document.getElementById("live-state");
const freeze = document.getElementById("live-freeze");
const source = main.dataset.liveSource;
const period = Number(main.dataset.liveSeconds) * 1000;
const FROZEN = "torra-frozen";
const SELDOM = 15000; // milliseconds between two looks while the desk tells what changes
const GATHER = 200; // several changes at once are one look
const STATES = ["desk.role", "desk.trading"]; // what must not look current while the desk is silent
const UNKNOWN = "? unknown";
const ATTRIBUTES = new Set([
  "x", "y", "width", "x1", "x2", "d", "opacity", "data-countdown", "data-confirm",
]);

let frozen = readFrozen();
let lastAnswer = performance.now();
let asking = false;
let again = false;
let told = false;
let lastAsked = -Infinity;
let soon = 0;
let failures = 0;

function readFrozen() {
  try {
    return sessionStorage.getItem(FROZEN) === "1";
  } catch {
    return false;
  }
}

function keepFrozen() {
  try {
    sessionStorage.setItem(FROZEN, frozen ? "1" : "0");
  } catch {
    // A browser without storage forgets the choice with the page.
  }
}

function say(text, tone) {
  if (isOut()) return;
  if (state.textContent !== text) state.textContent = text;
  state.dataset.tone = tone;
  document.body.dataset.connection = tone === "warn" ? "lost" : frozen ? "frozen" : "live";
}

function apply(cells) {
  for (const element of document.querySelectorAll("[data-live]")) {
    const cell = cells[element.dataset.live];
    if (cell) write(element, cell);
  }
}

function write(element, cell) {
  if (cell.hidden !== undefined) element.hidden = cell.hidden;
  if (cell.text !== undefined && unlike(element, cell.text)) element.textContent = cell.text;
  if (cell.tone) element.dataset.tone = cell.tone;
  else delete element.dataset.tone;
  if (cell.title) element.title = cell.title;
  else element.removeAttribute("title");
  for (const [name, value] of Object.entries(cell.set ?? {})) {
    const ownPage = name === "href" && String(value).startsWith("/");
    if (ATTRIBUTES.has(name) || ownPage) element.setAttribute(name, String(value));
  }
  if (cell.set?.["data-countdown"] === undefined) delete element.dataset.countdown;
  else element.dataset.seen = String(performance.now());
}

// Says that the desk's state is not known, with what was known last; the next answer undoes it.
function forget() {
  for (const name of STATES) {
    for (const element of document.querySelectorAll(`[data-live="${name}"]`)) {
      if (element.torraText === UNKNOWN) continue;
      const title = `the desk does not answer; last: ${element.textContent.trim()}`;
      write(element, { text: UNKNOWN, tone: "warn", title });
    }
  }
}

// Tells whether a text is another than the one written last: other modules write times anew in
// place, in the zone that a person chose, and only a new time may undo that.
function unlike(element, text) {
  const before = element.torraText ?? element.textContent;
  element.torraText = text;
  return before !== text;
}

function fitTicks(rows) {
  const body = document.getElementById("ticks");
  const blank = document.getElementById("tick-row");
  if (!body || !blank) return;
  for (let place = body.rows.length; place < rows; place += 1) {
    const row = blank.content.cloneNode(true);
    for (const element of row.querySelectorAll("[data-live]")) {
      element.dataset.live = element.dataset.live.replace("#", String(place));
    }
    body.append(row);
  }
  while (body.rows.length > rows) body.deleteRow(-1);
}

function countDown() {
  for (const element of document.querySelectorAll("[data-countdown]")) {
    const seen = Number(element.dataset.seen ?? 0);
    const left = Number(element.dataset.countdown) - (performance.now() - seen) / 1000;
    const text = clockText(Math.ceil(left));
    if (element.textContent !== text) element.textContent = text;
  }
}

function clockText(seconds) {
  if (seconds <= 0) return "due";
  const two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = two(seconds % 60);
  return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
}

async function ask() {
  if (frozen || document.hidden || isOut()) return;
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  lastAsked = performance.now();
  try {
    const answer = await fetch(source, {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(period * 3),
    });
    if (answer.status === 401) {
      leave();
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    take(await answer.json());
  } catch {
    failures += 1;
    const silent = Math.round((performance.now() - lastAnswer) / 1000);
    if (failures > 1 && !frozen) {
      say(`◷ stale: no answer from the desk for ${silent} s`, "warn");
      forget();
    }
  } finally {
    asking = false;
    if (again) askSoon();
    again = false;
  }
}

function askSoon() {
  clearTimeout(soon);
  soon = setTimeout(ask, GATHER);
}

// Asks at the page's own pace, and seldom while the desk tells what changes and answers.
function askInTime() {
  if (!told || failures || performance.now() - lastAsked >= SELDOM) ask();
}

function take(data) {
  if (frozen || isOut()) return;
  failures = 0;
  lastAnswer = performance.now();
  if (data.layout_version !== main.dataset.liveLayout) {
    say("the desk has changed: load this page again", "warn");
    return;
  }
  fitTicks(data.rows ?? 0);
  apply(data.cells);
  document.dispatchEvent(new CustomEvent("torra:data", { detail: data }));
  say("● live", "");
}

function showFreeze() {
  freeze.setAttribute("aria-pressed", String(frozen));
  freeze.textContent = frozen ? "Unfreeze page" : "Freeze page";
  freeze.title = frozen ? "Let the figures change again" : "Let the figures of this page stand; trading goes on";
  if (frozen) say("‖ frozen", "");
}

freeze.addEventListener("click", () => {
  frozen = !frozen;
  keepFrozen();
  showFreeze();
  document.dispatchEvent(new CustomEvent("torra:freeze", { detail: { frozen } }));
  ask();
});
document.addEventListener("visibilitychange", ask);
document.addEventListener("torra:changed", askSoon);
document.addEventListener("torra:command", ask); // whoever pressed a button looks at what it did
document.addEventListener("torra:connection", (event) => {
  told = event.detail?.state === "live";
  const how = told ? "The desk tells at once what changes" : "These figures are asked for again and again";
  state.title = event.detail?.notice || how;
});
document.addEventListener("torra:out", forget);
freeze.hidden = false;
showFreeze();
ask();
setInterval(askInTime, period);
setInterval(() => {
  if (!frozen && failures < 2 && !isOut()) countDown();
}, 250);
