// Keys for people who do not reach for the mouse. All of them are in one table, which the dialog of
// `?` lists. A key does nothing while somebody types, with Ctrl, Alt or Meta, or while a dialog is
// open; all can be switched off. No single key approves, sends or changes anything at the desk.

import { isOpen, make, show } from "./dialog.js";
import { chosen } from "./prefs.js";
import { closeNewest } from "./toast.js";

const PATIENCE = 1500; // milliseconds between g and the key after it
const TYPING = "input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]";
const ROW = "main [data-row], main [data-step], main tbody tr";
const ACTIVE = "a[href], button, summary";
let waiting = 0;

const KEYS = [
  ["?", "list the keys", openKeys],
  ["j", "next row", () => step(1)],
  ["k", "previous row", () => step(-1)],
  ["Enter", "open the row", null],
  ["[", "previous", () => press("a[rel~=prev]")],
  ["]", "next", () => press("a[rel~=next]")],
  ["x", "expand or fold everything", expand],
  ["/", "filter", () => focusOn("[data-filter]")],
  ["a", "to the button that approves (it is not pressed)", () => focusOn("[data-approve]")],
  [".", "freeze or unfreeze the page", () => press("#live-freeze:not([hidden])", () => true)],
  ["Esc", "close a dialog or a message", null],
];

function visible(element) {
  return element.checkVisibility({ visibilityProperty: true });
}

function press(selector, among = visible) {
  const element = [...document.querySelectorAll(selector)].find(among);
  element?.click();
  return Boolean(element);
}

function focusOn(selector) {
  const element = [...document.querySelectorAll(selector)].find(visible);
  if (!element) return false;
  const target = element.matches("form, section, div") ? element.querySelector("button") : element;
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
  return true;
}

function rowTargets() {
  const found = [];
  for (const row of document.querySelectorAll(ROW)) {
    if (!visible(row)) continue;
    const own = row.matches(`${ACTIVE}, [tabindex]`) ? row : row.querySelector(ACTIVE);
    if (own && visible(own) && found.at(-1)?.own !== own) found.push({ row, own });
  }
  return found;
}

function step(by) {
  const rows = rowTargets();
  if (!rows.length) return false;
  const at = rows.findLastIndex(({ row }) => row.contains(document.activeElement)); // the innermost
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by;
  const target = rows[Math.min(Math.max(next, 0), rows.length - 1)].own;
  target.focus();
  target.scrollIntoView({ block: "nearest" });
  return true;
}

function expand() {
  const all = [...document.querySelectorAll("main details")];
  const open = all.some((one) => !one.open);
  for (const one of all) one.open = open;
  return all.length > 0;
}

function places() {
  return [...document.querySelectorAll("nav [data-key]")];
}

function goTo(key) {
  const link = places().find((one) => one.dataset.key === key);
  link?.click();
  return Boolean(link);
}

function rowOf(keys, does) {
  const shown = keys.flatMap((key, place) => [...(place ? [" then "] : []), make("kbd", {}, key)]);
  return make("div", {}, make("dt", {}, ...shown), make("dd", {}, does));
}

export function openKeys() {
  const rows = KEYS.map(([key, does]) => rowOf([key], does));
  const ways = places().map((link) => {
    const word = link.firstChild.textContent.trim();
    return rowOf(["g", link.dataset.key], `go to ${word}`);
  });
  const off = chosen("keys") === "off" ? "Single keys are switched off (Display). " : "";
  const more = `${off}Tab, Shift+Tab and Enter reach everything too. No single key approves anything.`;
  show("Keys", [make("dl", { class: "keys" }, ...rows, ...ways), make("p", { class: "muted" }, more)]);
  return true;
}

function isTyping(event) {
  return event.target.closest?.(TYPING) || event.isComposing;
}

function escape() {
  if (document.activeElement?.closest(TYPING)) {
    document.activeElement.blur();
    return true;
  }
  return closeNewest();
}

function act(key) {
  if (waiting && performance.now() - waiting < PATIENCE) {
    waiting = 0;
    if (goTo(key)) return true;
  }
  waiting = key === "g" ? performance.now() : 0;
  return KEYS.find(([name]) => name === key)?.[2]?.() ?? false;
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isOpen()) return;
  if (event.key === "Escape") {
    escape();
    return;
  }
  if (isTyping(event) || chosen("keys") === "off") return;
  if (act(event.key)) event.preventDefault();
}

export function start() {
  document.addEventListener("keydown", onKey);
}
