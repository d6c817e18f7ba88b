// Keys for people who do not reach for the mouse. All of them are in one table, which the dialog of
// `?` lists. A key does nothing while somebody types, with Ctrl, Alt or Meta, or while a dialog is
// open; all can be switched off. No single key approves, sends or changes anything at the desk.

import { isOpen, make, show } from "./dialog.js";
import { chosen } from "./prefs.js";
import { closeNewest } from "./toast.js";

const TYPING = "input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]";
const ROW = "main [data-row], main [data-step], main tbody tr";
const ACTIVE = "a[href], button, summary";

const KEYS = [
  ["?", "list the keys", openKeys],
  ["j", "next row", () => step(1)],
  ["k", "previous row", () => step(-1)],
  ["/", "ask a question", ask],
  ["f", "filter", filter],
  [".", "freeze or unfreeze the page", freeze],
];

function visible(element) {
  return element.checkVisibility({ visibilityProperty: true });
}

function freeze() {
  const button = document.querySelector("#live-freeze:not([hidden])");
  button?.click();
  return Boolean(button);
}

function ask() {
  const field = [...document.querySelectorAll("[data-ask]")].find(visible);
  field?.focus();
  return Boolean(field);
}

function filter() {
  const field = [...document.querySelectorAll("[data-filter]")].find(visible);
  const target = field?.matches("form, section, div") ? field.querySelector("button") : field;
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
  return Boolean(field);
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

export function openKeys() {
  const rows = KEYS.map(([key, does]) =>
    make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, does)));
  const off = chosen("keys") === "off" ? "Single keys are switched off (Display). " : "";
  const more = `${off}Tab, Shift+Tab and Enter reach everything, Esc closes a dialog or a message. No single key approves anything.`;
  show("Keys", [make("dl", { class: "keys" }, ...rows), make("p", { class: "muted" }, more)]);
  return true;
}

function isTyping(event) {
  return event.target.closest?.(TYPING) || event.isComposing;
}

function escape() {
  if (document.activeElement?.closest(TYPING)) document.activeElement.blur();
  else closeNewest();
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isOpen()) return;
  if (event.key === "Escape") {
    escape();
    return;
  }
  if (isTyping(event) || chosen("keys") === "off") return;
  const act = KEYS.find(([key]) => key === event.key)?.[2];
  if (act?.()) event.preventDefault();
}

export function start() {
  document.addEventListener("keydown", onKey);
}
