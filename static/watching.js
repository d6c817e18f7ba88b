// The list of debates: puts the newest in its place when the desk tells that a tick began or ended,
// unless live updates are frozen. Who has the focus in the list keeps it. Without this module the
// list is as of its load.

import { isOut } from "./session.js";

const CALM = 1500; // milliseconds: several ticks at once are one look
const PATIENCE = 10000;
let timer = 0;
let newest = ""; // what the desk said last: times on the page may stand in another zone

function isFrozen() {
  return document.getElementById("live-freeze")?.getAttribute("aria-pressed") === "true";
}

// Returns this page as the desk shows it now, loaded by the browser as a document in which no script
// runs; null when there is no answer, which live.js tells.
function ownPage() {
  return new Promise((resolve) => {
    const asked = new XMLHttpRequest();
    asked.open("GET", location.href.split("#")[0]);
    asked.responseType = "document";
    asked.setRequestHeader("Accept", "text/html");
    asked.timeout = PATIENCE;
    asked.onloadend = () => resolve(asked.status === 200 ? asked.response : null);
    asked.send();
  });
}

function exchange(list, other) {
  if (newest === other.textContent) return;
  newest = other.textContent;
  const inside = list.contains(document.activeElement);
  const focused = inside ? document.activeElement.getAttribute("href") : null;
  const region = inside && document.activeElement.matches(".scroll");
  list.replaceChildren(...document.importNode(other, true).childNodes);
  if (!inside) return;
  const same = [...list.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused);
  const target = region ? list.querySelector(".scroll") : same;
  (target ?? document.getElementById("main")).focus({ preventScroll: true });
}

async function look() {
  const list = document.getElementById("debates");
  if (!list || isFrozen() || isOut() || document.hidden) return;
  const other = (await ownPage())?.getElementById("debates");
  if (other && !isFrozen()) exchange(list, other);
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(look, CALM);
}

document.addEventListener("torra:changed", (event) => {
  if (["tick", "running", "everything"].includes(event.detail?.what)) soon();
});
document.addEventListener("visibilitychange", soon);
document.addEventListener("torra:freeze", soon);
