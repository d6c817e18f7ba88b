// Keeps a page up to date. When the desk tells that something changed, and every few seconds while it
// tells nothing, the page's own address is loaded again, as a document in which no script runs, and
// each part of the page (`data-part`) becomes what the desk's answer shows. Only what the desk itself
// changed since its last answer is written: what a person typed, opened, chose or filtered stays, and
// so does what is marked `data-own`, which another module writes. A page whose figures stand asks for
// the frame alone, the header and the banners. Says so when the desk does not answer, counts down to
// what comes next, and stops all of it while updates are frozen. A desk that is silent is of unknown
// state, and the strip says so; a session that has ended ends the asking. Without this module a page
// shows the figures of its load.

import { isOut, leave } from "./session.js";
import { load, save } from "./storage.js";
import { wrapAll } from "./times.js";

const main = document.getElementById("main");
const state = document.getElementById("live-state");
const freeze = document.getElementById("live-freeze");
const own = location.href.split("#")[0];
const address = new URL(main.dataset.frame ?? own, location.href).href;
const period = Number(main.dataset.liveSeconds) * 1000;
const FROZEN = "torra-frozen";
const SELDOM = 15000; // milliseconds between two looks while the desk tells what changes
const GATHER = 200; // several changes at once are one look
const PATIENCE = 10000;
const UNKNOWN = "? unknown";

const answered = new WeakMap(); // by a node of this page: its twin in the desk's last answer
const coming = new WeakMap(); // by a node of this page: its twin in the answer that is put in place
const forgotten = new Map(); // by an element that must not look current: what it showed

let frozen = load(FROZEN) === "1";
let lastAnswer = performance.now();
let asking = false;
let again = false;
let told = false;
let lastAsked = -Infinity;
let soon = 0;
let failures = 0;

function say(text, tone) {
  if (isOut()) return;
  if (state.textContent !== text) state.textContent = text;
  state.dataset.tone = tone;
  document.body.dataset.connection = tone === "warn" ? "lost" : frozen ? "frozen" : "live";
}

// --- what the desk's answer changes ---

function parts() {
  return document.querySelectorAll("[data-part]");
}

function pair(node, twin) {
  answered.set(node, twin);
  node.childNodes.forEach((child, place) => pair(child, twin.childNodes[place]));
}

// A form is itself only where it sends the same: without a name of its own its address is one, so no
// row, word or question passes from one order to the next.
function nameForms(part) {
  for (const form of part.querySelectorAll("form[action]:not([id])")) form.setAttribute("id", form.getAttribute("action"));
}

// The page and the desk's answer are compared with their forms named and their times wrapped.
function prepare(part) {
  nameForms(part);
  wrapAll(part);
}

// Lets go of the answer before: what is equal to it has its twin in the newest one.
function renewTwins(node, before, twin) {
  const next = new Map();
  const walk = (old, fresh) => {
    next.set(old, fresh);
    old.childNodes.forEach((child, place) => walk(child, fresh.childNodes[place]));
  };
  const take = (one) => {
    const fresh = next.get(answered.get(one));
    if (fresh) answered.set(one, fresh);
    one.childNodes.forEach(take);
  };
  walk(before, twin);
  take(node);
}

const callbacks = {
  beforeNodeMorphed(node, twin) {
    if (node.dataset?.own !== undefined) return false;
    const before = answered.get(node);
    if (before?.isEqualNode(twin)) {
      renewTwins(node, before, twin);
      return false;
    }
    coming.set(node, twin);
    return true;
  },
  afterNodeMorphed(node, twin) {
    coming.delete(node);
    answered.set(node, twin);
  },
  afterNodeAdded: (node) => pair(node, node.cloneNode(true)),
  beforeNodeRemoved: (node) => node.dataset?.own === undefined,
  // an attribute or a field's value that the desk has not changed is this page's own
  beforeAttributeUpdated(name, node) {
    const [before, now] = [answered.get(node), coming.get(node)];
    return !before || before.getAttribute?.(name) !== now.getAttribute?.(name);
  },
};

// A chart is its module's own, and another one once its data stand at another address.
function renewCharts(part, twin) {
  for (const chart of part.querySelectorAll("[data-chart]")) {
    const next = twin.querySelector("[data-chart]");
    if (next && next.dataset.chart !== chart.dataset.chart) chart.replaceWith(next.cloneNode(true));
  }
}

function put(fresh) {
  const now = String(performance.now());
  for (const part of parts()) {
    const twin = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!twin) continue;
    const focused = part.contains(document.activeElement);
    prepare(twin);
    renewCharts(part, twin);
    Idiomorph.morph(part, twin, { callbacks });
    if (focused && !part.contains(document.activeElement)) main.focus({ preventScroll: true });
    for (const element of part.querySelectorAll("[data-countdown]")) element.dataset.seen = now;
  }
}

// Says that the desk's state is not known, with what was known last; the next answer undoes it.
function forget() {
  for (const element of document.querySelectorAll("[data-current]")) {
    if (forgotten.has(element)) continue;
    forgotten.set(element, element.cloneNode(true));
    element.title = `the desk does not answer; last: ${element.textContent.trim()}`;
    element.dataset.tone = "warn";
    element.textContent = UNKNOWN;
  }
}

function recall() {
  for (const [element, shown] of forgotten) {
    answered.set(shown, answered.get(element));
    element.replaceWith(shown);
  }
  forgotten.clear();
}

// --- countdowns ---

function left(element) {
  const seen = Number(element.dataset.seen ?? 0);
  return Number(element.dataset.countdown) - (performance.now() - seen) / 1000;
}

function countDown() {
  for (const element of document.querySelectorAll("[data-countdown]")) {
    const seconds = left(element);
    const text = clockText(Math.ceil(seconds));
    if (element.textContent !== text) element.textContent = text;
  }
}

// Also while the page is frozen or the desk is silent: what is over cannot be answered.
function lookAtExpiry() {
  for (const element of document.querySelectorAll("[data-expiry]")) {
    if (left(element) <= 0 && !element.dataset.over) expire(element);
  }
}

// What a person may answer until a moment is hidden at that moment; the desk then says what came of it.
function expire(element) {
  element.dataset.over = "1";
  for (const form of document.querySelectorAll("[data-until-expiry]")) form.hidden = true;
  ask();
}

function clockText(seconds) {
  if (seconds <= 0) return "due";
  const two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = two(seconds % 60);
  return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
}

// --- asking ---

// Returns a page as the desk shows it now: made by the browser, never from text here.
function fetchPage(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.setRequestHeader("Accept", "text/html");
    request.timeout = PATIENCE;
    request.onloadend = () => {
      if (request.status && request.responseURL !== address) leave(); // it leads to the login
      else if (request.status === 200 && request.response) resolve(request.response);
      reject(new Error(String(request.status)));
    };
    request.send();
  });
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
    take(await fetchPage(address));
  } catch {
    failures += 1;
    const silent = Math.round((performance.now() - lastAnswer) / 1000);
    if (failures > 1 && !frozen && !isOut()) {
      say(`◷ stale: no answer from the desk for ${silent} s`, "warn");
      forget();
    }
  } finally {
    asking = false;
    if (again) askSoon();
    again = false;
  }
}

// Loads the whole page anew, also one whose figures stand; rejects where the desk does not answer.
export async function renew() {
  take(await fetchPage(own));
}

function askSoon() {
  clearTimeout(soon);
  soon = setTimeout(ask, GATHER);
}

// Asks at the page's own pace, and seldom while the desk tells what changes and answers; a price moves
// without the desk telling, so a page on which something expires always asks at its pace.
function askInTime() {
  const moving = document.querySelector("[data-expiry]");
  if (!told || failures || moving || performance.now() - lastAsked >= SELDOM) ask();
}

function take(fresh) {
  if (frozen || isOut()) return;
  failures = 0;
  lastAnswer = performance.now();
  recall();
  document.dispatchEvent(new CustomEvent("torra:fresh", { detail: fresh }));
  put(fresh);
  document.dispatchEvent(new CustomEvent("torra:renewed"));
  say("● live", "");
}

function showFreeze() {
  freeze.setAttribute("aria-pressed", String(frozen));
  freeze.textContent = frozen ? "Unfreeze page" : "Freeze page";
  freeze.title = frozen ? "Let the figures change again" : "Let the figures of this page stand; trading goes on";
  if (frozen) say("‖ frozen", "");
}

for (const part of parts()) {
  prepare(part);
  pair(part, part.cloneNode(true));
}
freeze.addEventListener("click", () => {
  frozen = !frozen;
  save(FROZEN, frozen ? "1" : "0");
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
  lookAtExpiry();
}, 250);
