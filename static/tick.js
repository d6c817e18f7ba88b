// The page of one tick: what is pointed at, focused or clicked lights up with all that belongs to it
// (a feature of the evidence, whoever cites it), the conversation folds, and shows one agent alone.
// A call's prompt and reply are loaded when it is unfolded. Without this module citations are plain
// links to the evidence, everything is unfolded, and a call is a page of its own.

import { load, save } from "./storage.js";

const OPENED = "torra-tick-folded";
let pinned = "";

// What shows a feature: the citations that lead to its row, and the row itself.
const SHOWS = "a.cite, .evidence tbody tr";

function nameOf(element) {
  return element.hash ? decodeURIComponent(element.hash.slice(1)) : element.id;
}

function light(name) {
  for (const one of document.querySelectorAll("[data-lit]")) delete one.dataset.lit;
  if (!name) return;
  for (const one of document.querySelectorAll(SHOWS)) {
    if (nameOf(one) !== name) continue;
    one.dataset.lit = "";
    const article = one.closest("article");
    if (article) article.dataset.lit = "";
  }
}

function featureOf(event) {
  const element = event.target.closest?.(SHOWS);
  return element ? nameOf(element) : "";
}

function point(event) {
  light(featureOf(event) || pinned);
}

function pin(event) {
  const feature = featureOf(event);
  if (!feature) return;
  pinned = pinned === feature ? "" : feature;
  light(pinned || feature);
}

function release(event) {
  if (event.key !== "Escape" || !pinned) return;
  pinned = "";
  light("");
}

// --- folding and filtering ---

const folding = document.querySelector(".folding");
const articles = [...document.querySelectorAll("article.voice")];

function fold(open) {
  for (const one of articles) one.querySelector("details").open = open;
  save(OPENED, open ? "0" : "1");
}

function only(agent) {
  for (const one of articles) one.hidden = Boolean(agent) && one.dataset.agent !== agent;
  for (const stage of document.querySelectorAll(".conversation > h3")) {
    const own = ownArticles(stage);
    stage.hidden = own.length > 0 && own.every((one) => one.hidden);
  }
  for (const button of folding.querySelectorAll("[data-who]")) {
    button.setAttribute("aria-pressed", String(button.dataset.who === agent));
  }
  const shown = articles.filter((one) => !one.hidden).length;
  document.getElementById("shown-words").textContent = `${shown} of ${articles.length} shown`;
}

function ownArticles(stage) {
  const own = [];
  for (let next = stage.nextElementSibling; next && next.tagName !== "H3"; next = next.nextElementSibling) {
    if (next.tagName === "ARTICLE") own.push(next);
  }
  return own;
}

// A link into what is filtered away or folded shows it again.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    fold.open = true;
  }
  const article = target?.closest("article.voice");
  if (!article) return;
  if (article.hidden) only("");
  article.querySelector("details").open = true;
  target.scrollIntoView({ block: "nearest" });
}

// The page of a call comes as a document, in which no script runs; without an answer its link stays.
function unfold({ target: fold }) {
  if (!fold.open || !fold.dataset.load) return;
  const asked = new XMLHttpRequest();
  asked.open("GET", fold.dataset.load);
  asked.responseType = "document";
  asked.onload = () => {
    const call = asked.status === 200 && asked.response?.querySelector("[data-part=call]");
    if (!call) return;
    delete fold.dataset.load;
    fold.querySelector("p").replaceWith(document.importNode(call, true));
  };
  asked.send();
}

document.addEventListener("toggle", unfold, true);
for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, point);
document.addEventListener("click", pin);
document.addEventListener("keydown", release);
if (folding) {
  folding.hidden = false;
  folding.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.fold) fold(button.dataset.fold === "open");
    else if (button) only(button.dataset.who);
  });
  if (load(OPENED) === "1" && !location.hash) fold(false);
  addEventListener("hashchange", reveal);
  reveal();
}
