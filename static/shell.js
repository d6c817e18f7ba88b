// What every page does for a visitor: keys, times, commands, notices, the buttons of display and keys,
// the number of waiting proposals in the title. Each part stands alone; without scripts pages show the
// figures of their load, in UTC, and every form works.

import * as commands from "./commands.js";
import { make } from "./dialog.js";
import * as keys from "./keys.js";
import * as notices from "./notices.js";
import { CHOICES, choose, chosen, openPreferences } from "./prefs.js";
import * as times from "./times.js";

const title = document.title;

function zoneSwitch() {
  const words = { utc: "UTC", broker: "broker", local: "local" };
  const options = CHOICES.zone[2].map(([value]) => make("option", { value }, words[value]));
  const choice = make("select", { id: "zone-choice" }, ...options);
  const put = () => (choice.value = chosen("zone"));
  choice.addEventListener("change", () => choose("zone", choice.value));
  document.addEventListener("torra:preferences", put);
  put();
  return make("label", {}, "Times ", choice);
}

function tools() {
  const place = document.getElementById("tools");
  if (!place) return;
  const display = make("button", { type: "button", id: "open-display" }, "Display");
  const list = make("button", { type: "button", id: "open-keys" }, "Keys");
  display.addEventListener("click", openPreferences);
  list.addEventListener("click", keys.openKeys);
  place.prepend(zoneSwitch(), display, list);
}

// What hangs from the header folds up where it is not wanted any more.
function folding() {
  const more = document.getElementById("more");
  if (!more) return;
  document.addEventListener("click", (event) => {
    const inside = more.contains(event.target) || event.target.closest("dialog");
    if (more.open && !inside) more.open = false;
  });
  more.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !more.open) return;
    more.open = false;
    more.querySelector("summary").focus();
  });
}

// The proposals that wait, in the title: a tab that nobody looks at tells it too.
function badge() {
  const cell = document.querySelector(".rooms .count");
  if (!cell) return;
  const put = () => {
    const waits = !cell.hidden && cell.textContent.trim();
    document.title = waits ? `(${waits}) ${title}` : title;
  };
  const watched = { attributes: true, childList: true, characterData: true, subtree: true };
  new MutationObserver(put).observe(cell, watched);
  put();
}

// Halt is offered while there is something to halt: the banner knows, and lives with the figures.
function halting() {
  const button = document.querySelector(".top .halt button");
  const banner = document.getElementById("trading-halted");
  if (!button || !banner) return;
  const put = () => {
    const halted = !banner.hidden;
    if (halted && document.activeElement === button) banner.querySelector("a")?.focus();
    button.disabled = halted;
    button.textContent = halted ? "⊘ halted" : "⊘ Halt";
  };
  new MutationObserver(put).observe(banner, { attributes: true, attributeFilter: ["hidden"] });
  put();
}

// The header stays in sight where there is room; what has the focus is never below it.
function headroom() {
  const header = document.querySelector(".top");
  const put = () => {
    const stays = getComputedStyle(header).position === "sticky";
    const height = stays ? header.offsetHeight : 0;
    document.documentElement.style.setProperty("--headroom", `${height + 12}px`);
  };
  new ResizeObserver(put).observe(header);
  addEventListener("resize", put);
  put();
}

tools();
folding();
badge();
halting();
headroom();
times.start();
commands.start();
keys.start();
notices.start();
