// Notices of the desk as the browser's own notifications, while a page of it is open in any tab. Off
// until a person switches them on in the preferences, which is when the browser asks for permission.
// The choice, and the number of the notice that was shown last, stay in this browser. A notice has a
// tag, so that several tabs show one. What the desk says is text and stays text. A browser that knows
// no notifications, or an address that is not safe enough for it, is offered nothing.

import { make } from "./dialog.js";
import { isOut } from "./session.js";
import { BROWSER, load, save } from "./storage.js";

const CHOSEN = "torra-notices";
const SEEN = "torra-notices-seen";
const PERIOD = 15000; // milliseconds between two looks while the desk tells of no change
const FORGOTTEN = 120000; // milliseconds without any page: what came meanwhile is not called out
const GATHER = 200;

const source = document.documentElement.dataset.notices;
const known = Boolean(source) && "Notification" in window && window.isSecureContext;
let asking = false;
let again = false;
let soon = 0;
let trouble = "";

function on() {
  return known && load(CHOSEN, BROWSER) === "on" && Notification.permission === "granted";
}

// The number of the notice that was shown last by any tab, null when no page was open of late.
function seen() {
  const [number, at] = (load(SEEN, BROWSER) ?? "").split(" ").map(Number);
  const fresh = Math.abs(Date.now() - at) < FORGOTTEN;
  return Number.isSafeInteger(number) && fresh ? number : null;
}

function note(number) {
  save(SEEN, `${number} ${Date.now()}`, BROWSER);
}

async function look() {
  if (!on() || isOut()) return;
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    const before = seen();
    const url = new URL(source, location.href);
    if (before !== null) url.searchParams.set("after", String(before));
    const answer = await fetch(url, {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(PERIOD),
    });
    if (!answer.ok) return; // live.js finds out what is wrong, and says it
    const told = await answer.json();
    const shown = Math.max(before ?? 0, seen() ?? 0); // another tab may have been quicker
    if (before !== null) {
      for (const notice of told.notices) if (!notice.silent && notice.id > shown) show(notice);
    }
    note(told.newest);
    if (before !== null && told.notices.length) again = true;
  } catch {
    // The desk does not answer: the next look asks for the same.
  } finally {
    asking = false;
    if (again) lookSoon();
    again = false;
  }
}

function lookSoon() {
  clearTimeout(soon);
  soon = setTimeout(look, GATHER);
}

function show(notice) {
  try {
    const made = new Notification(notice.title, { body: notice.text, tag: notice.key });
    made.onclick = () => window.focus();
  } catch {
    trouble = "This browser shows none from a page.";
  }
}

// The part of the preferences that switches notices on and off; null where there are none to have.
export function control() {
  if (!known) return null;
  const button = make("button", { type: "button", id: "notices-switch" });
  const told = make("p", { class: "muted", id: "notices-told", role: "status" });
  const put = () => {
    button.textContent = on() ? "Switch notices off" : "Switch notices on";
    const refused = Notification.permission === "denied";
    told.textContent =
      (refused && "The browser refuses them: allow notifications for this address in its settings.") ||
      trouble ||
      (on() ? "On, while a page of this desk is open in any tab." : "Off.");
  };
  button.addEventListener("click", async () => {
    if (on()) {
      save(CHOSEN, "off", BROWSER);
    } else if ((await Notification.requestPermission()) === "granted") {
      save(CHOSEN, "on", BROWSER);
      look();
    }
    put();
  });
  put();
  const legend = make("legend", {}, "Notices of this browser");
  const about = make("p", { class: "muted" }, "A proposal, a fill, a halt, an alarm.");
  return make("fieldset", {}, legend, about, button, told);
}

export function start() {
  if (!known) return;
  document.addEventListener("torra:changed", (event) => {
    if (["notices", "everything"].includes(event.detail?.what)) lookSoon();
  });
  look();
  setInterval(look, PERIOD);
}
