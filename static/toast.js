// Tells in a corner of the page what became of something, and to a screen reader without taking the
// focus: `say(text, tone)`. Good news leaves by itself; a failure or a warning stays until it is
// closed; `keep` has it said by the page that comes next. `urgent` interrupts a screen reader and is
// for a halt and a veto alone. Without a script of ours nothing is said here: a command then answers
// with a page.

import { make } from "./dialog.js";
import { save, take } from "./storage.js";

const LASTS = 9000; // milliseconds of good news
const MOST = 5;
const KEPT = "torra-toasts";
const OLDEST = 30000; // milliseconds after which a kept message is news no more
const now = () => performance.timeOrigin + performance.now(); // no clock that somebody sets
const SETTLE = 150; // a region that is filled while the page is being built is read by nobody
const GLYPHS = { done: "✓", running: "…", warn: "!", alert: "✕", note: "i" };

let leaving = false;

// Says something; returns a function that takes it away again.
export function say(text, tone = "note", { urgent = false } = {}) {
  const place = document.getElementById(urgent ? "toasts-urgent" : "toasts");
  if (!place) return () => {};
  const close = make("button", { type: "button", "aria-label": "Close this message" }, "✕");
  const glyph = make("span", { "aria-hidden": "true", class: "glyph" }, GLYPHS[tone] ?? GLYPHS.note);
  const toast = make("div", { class: "toast", "data-tone": tone }, glyph, make("p", {}, text), close);
  const away = () => toast.remove();
  close.addEventListener("click", away);
  place.append(toast);
  while (place.childElementCount > MOST) place.firstElementChild.remove();
  if (tone !== "warn" && tone !== "alert") leaveLater(toast, away);
  return away;
}

// What somebody points at or has the focus in does not leave.
function leaveLater(toast, away) {
  const look = () => {
    if (!toast.isConnected) return;
    if (toast.matches(":hover, :focus-within")) setTimeout(look, LASTS);
    else away();
  };
  setTimeout(look, LASTS);
}

// Returns the messages that are kept, and keeps them no more.
function kept() {
  try {
    const found = JSON.parse(take(KEPT) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => now() - Number(one?.at) <= OLDEST) : [];
  } catch {
    return [];
  }
}

// Keeps a message for the next page of this tab, which says it once, if it comes soon. This page is
// about to be left.
export function keep(text, tone = "note") {
  leaving = true;
  const all = [...kept(), { text, tone, at: now() }].slice(-MOST);
  save(KEPT, JSON.stringify(all));
}

// Says what was kept. A page that is left before it could leaves it to the next one.
export function sayKept() {
  setTimeout(() => {
    if (leaving) return;
    for (const one of kept()) say(String(one.text), String(one.tone));
  }, SETTLE);
}

// Takes the newest message away.
export function closeNewest() {
  [...document.querySelectorAll(".toasts .toast")].at(-1)?.remove();
}
