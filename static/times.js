// Shows every time of a page in the zone that the visitor chose: UTC, the broker's server, or this
// computer. Templates and cells write "2021-12-01 10:15 UTC"; such text is wrapped in a <time> whose
// title tells all three, and rewritten in place, also when a live update writes it anew. A time that
// this browser cannot place stays UTC. What people or models said is left as they said it.

import { chosen } from "./prefs.js";

// Text of others may name a day or an hour that there is none of: that is no time, and stays as it is.
const TIME =
  /\b(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])) ((?:[01]\d|2[0-3]):[0-5]\d)(:[0-5]\d)? UTC\b/;
const LEFT_ALONE =
  ".said, .words-of-others, pre, code, input, textarea, select, option, script, style, svg, time, title, [data-times=kept]";
const MINUTE = 60000;
const QUARTER = 15 * MINUTE;
const formats = new Map();
const offsets = new Map();

// Minutes that a wall clock is ahead of UTC at a moment (milliseconds); null for a clock unknown here.
export function ahead(clock, moment) {
  const quarter = Math.floor(moment / QUARTER) * QUARTER;
  const key = `${clock} ${quarter}`;
  if (!offsets.has(key)) {
    if (offsets.size > 5000) offsets.clear();
    offsets.set(key, measured(clock, quarter));
  }
  return offsets.get(key);
}

function measured(clock, moment) {
  if (clock === "utc") return 0;
  if (clock === "local") return -new Date(moment).getTimezoneOffset();
  const fixed = /^([+-])(\d{2}):(\d{2})$/.exec(clock);
  if (fixed) return Number(`${fixed[1]}1`) * (60 * fixed[2] + Number(fixed[3]));
  const [zone, shift] = clock === "new_york+7" ? ["America/New_York", 7 * 60] : [clock, 0];
  try {
    const wall = formatOf(zone).format(moment).replace(" ", "T");
    return (Date.parse(`${wall}Z`) - moment) / MINUTE + shift;
  } catch {
    return null;
  }
}

// Writes a moment as 2021-12-01 10:15:00, as Swedes do.
function formatOf(zone) {
  if (!formats.has(zone)) {
    formats.set(zone, new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" }));
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

function wrap(text) {
  const found = TIME.exec(text.data);
  if (!found || text.parentElement?.closest(LEFT_ALONE)) return;
  const [, day, minutes, seconds] = found;
  const moment = new Date(`${day}T${minutes}${seconds ?? ":00"}Z`);
  if (Number.isNaN(moment.getTime())) return; // the 30th of February
  const own = text.splitText(found.index);
  const rest = own.splitText(found[0].length);
  const time = document.createElement("time");
  time.dateTime = moment.toISOString();
  time.dataset.seconds = String(seconds !== undefined);
  own.replaceWith(time);
  time.append(own);
  show(time);
  wrap(rest);
}

function show(time) {
  const inZone = (zone) => write(zone, Date.parse(time.dateTime), time.dataset.seconds === "true");
  const text = inZone(chosen("zone"));
  if (time.firstChild.data !== text) time.firstChild.data = text;
  time.title = ["utc", "broker", "local"].map(inZone).join("\n");
}

// Wraps the times of a text, or of all texts of an element: of this page, or of the desk's next answer.
export function wrapAll(node) {
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = node.nodeType === Node.TEXT_NODE ? [node] : [];
  while (walk.nextNode()) if (walk.currentNode.data.includes(" UTC")) texts.push(walk.currentNode);
  texts.forEach(wrap);
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
