// Shows every time of a page in the zone that the visitor chose: UTC, the broker's server, or this
// computer. Templates and cells write "2021-12-01 10:15 UTC"; such text is wrapped in a <time> whose
// title tells all three, and rewritten in place, also when a live update writes it anew. A time that
// this browser cannot place stays UTC. What people or models said is left as they said it.

import { chosen } from "./prefs.js";

const TIME = /\b(\d{4})-(\d{2})-(\d{2}) (\d{2}):(\d{2})(?::(\d{2}))? UTC\b/;
const LEFT_ALONE =
  ".said, .words-of-others, pre, code, input, textarea, select, option, script, style, svg, time, title, [data-times=kept]";
const MINUTE = 60000;
const QUARTER = 15 * MINUTE;
const formats = new Map();
const offsets = new Map();

// Minutes that a wall clock is ahead of UTC at a moment (milliseconds); null for a clock unknown here.
export function ahead(clock, moment) {
  const quarter = Math.floor(moment / QUARTER);
  const key = `${clock} ${quarter}`;
  if (!offsets.has(key)) {
    if (offsets.size > 5000) offsets.clear();
    offsets.set(key, measured(clock, quarter * QUARTER));
  }
  return offsets.get(key);
}

function measured(clock, moment) {
  if (clock === "utc") return 0;
  const fixed = /^([+-])(\d{2}):(\d{2})$/.exec(clock);
  if (fixed) return (fixed[1] === "-" ? -1 : 1) * (60 * Number(fixed[2]) + Number(fixed[3]));
  if (clock === "local") return -new Date(moment).getTimezoneOffset();
  if (clock === "new_york+7") return zoneAhead("America/New_York", moment) + 7 * 60;
  return clock.includes("/") ? zoneAhead(clock, moment) : null;
}

function zoneAhead(zone, moment) {
  try {
    const parts = {};
    for (const { type, value } of formatOf(zone).formatToParts(moment)) parts[type] = Number(value);
    const { year, month, day, hour, minute, second } = parts;
    return (Date.UTC(year, month - 1, day, hour, minute, second) - moment) / MINUTE;
  } catch {
    return null;
  }
}

function formatOf(zone) {
  if (!formats.has(zone)) {
    const two = "2-digit";
    const wanted = { year: "numeric", month: two, day: two, hour: two, minute: two, second: two };
    const options = { ...wanted, timeZone: zone, hourCycle: "h23", calendar: "iso8601" };
    formats.set(zone, new Intl.DateTimeFormat("en-GB", options));
  }
  return formats.get(zone);
}

function clockOf(zone) {
  return zone === "broker" ? (document.documentElement.dataset.brokerClock ?? "utc") : zone;
}

function offsetText(minutes) {
  const two = (value) => String(value).padStart(2, "0");
  const rest = Math.abs(minutes) % 60;
  const hours = Math.floor(Math.abs(minutes) / 60);
  return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? `:${two(rest)}` : ""}`;
}

// Writes a moment as the clock of a zone (utc, broker, local) shows it, always with that zone.
export function write(zone, moment, seconds = false) {
  const minutes = ahead(clockOf(zone), moment);
  const known = minutes ?? 0;
  const wall = new Date(moment + known * MINUTE).toISOString();
  const text = `${wall.slice(0, 10)} ${wall.slice(11, seconds ? 19 : 16)}`;
  if (zone === "utc" || minutes === null) return `${text} UTC`;
  return `${text} ${zone} ${offsetText(known)}`;
}

function title(moment, seconds) {
  return ["utc", "broker", "local"].map((zone) => write(zone, moment, seconds)).join("\n");
}

function wrap(text) {
  const found = TIME.exec(text.data);
  if (!found || text.parentElement?.closest(LEFT_ALONE)) return;
  const own = text.splitText(found.index);
  const rest = own.splitText(found[0].length);
  const [year, month, day, hour, minute, second] = found.slice(1).map(Number);
  const moment = Date.UTC(year, month - 1, day, hour, minute, second || 0);
  const seconds = found[6] !== undefined;
  const time = document.createElement("time");
  time.dateTime = new Date(moment).toISOString();
  time.dataset.seconds = String(seconds);
  own.replaceWith(time);
  time.append(own);
  show(time);
  wrap(rest);
}

function show(time) {
  const moment = Date.parse(time.dateTime);
  const seconds = time.dataset.seconds === "true";
  const text = write(chosen("zone"), moment, seconds);
  if (time.firstChild.data !== text) time.firstChild.data = text;
  time.title = title(moment, seconds);
}

function wrapAll(node) {
  if (node.nodeType === Node.TEXT_NODE) return wrap(node);
  if (node.nodeType !== Node.ELEMENT_NODE || node.closest(LEFT_ALONE)) return undefined;
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) if (walk.currentNode.data.includes(" UTC")) texts.push(walk.currentNode);
  return texts.forEach(wrap);
}

function tellZone() {
  const place = document.getElementById("zone-told");
  if (!place) return;
  const zone = chosen("zone");
  const clock = document.documentElement.dataset.brokerClock ?? "utc";
  const words = {
    utc: "UTC",
    broker: `those of the broker's server (${clock.replace("new_york+7", "New York + 7 h")})`,
    local: "those of this computer",
  };
  const unknown = ahead(clockOf(zone), 0) === null;
  place.textContent = unknown ? "UTC, for the broker's clock is not known" : words[zone];
}

function showAll() {
  tellZone();
  for (const time of document.querySelectorAll("time[data-seconds]")) show(time);
}

export function start() {
  wrapAll(document.body);
  showAll();
  const watch = new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === "characterData") wrapAll(target);
      else addedNodes.forEach(wrapAll);
    }
  });
  watch.observe(document.body, { childList: true, characterData: true, subtree: true });
  document.addEventListener("torra:preferences", showAll);
}
