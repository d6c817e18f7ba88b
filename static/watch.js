// Follows a debate: the stream tells that something was said, the figures come from the page's own
// source, so that what is shown is the same with the stream, without it, and after a reload. One line
// is added to the log for each agent that is done; clocks run beside those who are at work. Frozen
// with the other live updates. Without this module the page shows the debate as of its load.

import { isOut, leave } from "./session.js";
import { follow } from "./stream.js";

const root = document.getElementById("debate");
const log = document.getElementById("log");
const room = document.getElementById("log-room");
const desk = document.getElementById("desk");
const link = document.getElementById("to-tick");
const moveOn = document.getElementById("move-on");
const connection = document.getElementById("connection");
const MOVE = "torra-watch-moves";
const GATHER = 150; // milliseconds: several events at once are one look
const WORDS = {
  live: "● live",
  polling: "● asks every few seconds",
  lost: "◷ the desk does not answer",
  frozen: "‖ frozen",
  out: "logged out",
};

let seq = Number(root.dataset.seq);
let over = Boolean(root.dataset.over);
let asking = false;
let again = false;
let timer = 0;
let stream = null;
let streaming = "";
let loaded = performance.now();

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== "") made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

function write(target, text) {
  if (target && target.textContent !== text) target.textContent = text;
}

function isFrozen() {
  return document.getElementById("live-freeze")?.getAttribute("aria-pressed") === "true";
}

// --- showing ---

function agentRow(agent) {
  const about = [agent.where, agent.about].filter(Boolean).join(", ");
  const clock = element("span", { class: "num muted", "data-elapsed": agent.elapsed }, agent.took);
  return element(
    "li",
    { "data-agent": agent.name, "data-state": agent.state },
    element("strong", {}, agent.title), " ",
    element("span", { class: "mark", "data-tone": agent.tone }, agent.mark), " ", clock, " ",
    element("span", { class: "muted about" }, about),
  );
}

function line(told) {
  const made = element("li", { "data-seq": told.seq, "data-tone": told.tone });
  if (told.who) {
    const where = [told.where, told.head].filter(Boolean).join(", ");
    made.append(element("strong", {}, told.who), " ", element("span", { class: "muted" }, where));
  }
  if (told.votes.length) {
    const votes = told.votes.map((vote) =>
      element("li", {}, element("span", { class: "muted" }, vote.name), " ",
        element("span", { class: "num", "data-tone": vote.tone }, vote.text)));
    made.append(element("ul", { class: "votes" }, ...votes));
  }
  if (told.words) made.append(element("p", { class: "said" }, told.words));
  return made;
}

function fact(name, ...values) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, ...values));
}

function mark(told) {
  return element("span", { class: "mark", "data-tone": told[2] }, `${told[0]} ${told[1]}`);
}

function decided(end) {
  const verdict = element("strong", { class: "pill", "data-tone": end.verdict[2] }, `${end.verdict[0]} ${end.verdict[1]}`);
  const facts = element("dl", { class: "facts" },
    fact("Verdict", verdict), fact("Without agents", mark(end.l1_verdict)), fact("Consensus", end.consensus),
    fact("Action", mark(end.action)), fact("Source", mark(end.source)), fact("Cost, took", `${end.cost}, ${end.took} ms`));
  const why = end.denied.length ? `${end.reason}: ${end.denied.join(", ")}` : end.reason;
  const said = end.sentence ? [element("p", { class: "tick-says" }, end.sentence), facts] : [facts];
  return why ? [...said, element("p", { class: "reason" }, why)] : said;
}

function failed(end) {
  const then = end.again ? end.then : `${end.then} This attempt is not repeated.`;
  return [
    element("p", { class: "state", "data-state": "error" }, element("strong", {}, `✕ ${end.what}`), ` ${end.message} `,
      element("code", {}, end.code)),
    element("p", {}, then),
  ];
}

function show(now) {
  loaded = performance.now();
  write(document.getElementById("stage"), now.over ? "" : now.stage || "about to begin");
  write(document.getElementById("counts"), now.counts);
  const elapsed = document.getElementById("elapsed");
  if (elapsed && now.elapsed !== null) elapsed.dataset.elapsed = String(now.elapsed);
  document.getElementById("silence").hidden = !now.silent;
  write(document.getElementById("silence-span"), now.silence);
  if (now.agents.length) desk.replaceChildren(...now.agents.map(agentRow));
  const fresh = now.log.filter((told) => told.seq > seq);
  const below = room.scrollHeight - room.scrollTop - room.clientHeight < 40;
  log.append(...fresh.map(line));
  if (fresh.length) document.getElementById("log-empty")?.remove();
  if (below) room.scrollTop = room.scrollHeight;
  seq = Math.max(seq, now.seq);
  if (now.over && !over) finish(now);
}

function finish(now) {
  over = true;
  stream?.close();
  write(document.getElementById("outcome-name"), "What came of it");
  document.getElementById("end").replaceChildren(...(now.end.kind === "decision" ? decided(now.end) : failed(now.end)));
  document.getElementById("elapsed")?.parentElement.remove();
  write(connection, "ended");
  document.getElementById("move").hidden = true;
  lead(link, now.tick);
  lead(document.getElementById("to-next"), now.next);
  if (now.tick && now.end.kind === "decision" && moveOn.checked) location.assign(now.tick);
}

function lead(to, address) {
  if (!String(address).startsWith("/")) return;
  to.href = address;
  to.hidden = false;
}

// --- asking ---

async function look() {
  if (over || isOut()) return;
  if (isFrozen()) {
    write(connection, WORDS.frozen);
    return;
  }
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    const answer = await fetch(root.dataset.source, { headers: { Accept: "application/json" } });
    if (answer.status === 401) {
      leave();
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    show(await answer.json());
    if (!over) write(connection, WORDS[streaming === "live" ? "live" : "polling"]);
  } catch {
    write(connection, WORDS[isOut() ? "out" : "lost"]);
  } finally {
    asking = false;
    if (again) {
      again = false;
      soon();
    }
  }
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(look, GATHER);
}

function tick() {
  const since = (performance.now() - loaded) / 1000;
  if (isFrozen() || isOut()) return;
  for (const clock of root.querySelectorAll("[data-elapsed]")) {
    write(clock, `${Math.floor(Number(clock.dataset.elapsed) + since)} s`);
  }
}

function keptMove() {
  try {
    moveOn.checked = sessionStorage.getItem(MOVE) === "1";
  } catch {
    // A browser without storage asks anew.
  }
}

function begin() {
  document.getElementById("move").hidden = false;
  keptMove();
  moveOn.addEventListener("change", () => {
    try {
      sessionStorage.setItem(MOVE, moveOn.checked ? "1" : "0");
    } catch {
      // The choice lasts as long as the page.
    }
  });
  stream = follow(root.dataset.stream, {
    onEnvelope: soon,
    onState: (state) => {
      streaming = state;
      if (state === "live" || state === "frozen") write(connection, WORDS[state]);
      else soon(); // whoever answers that says how the figures come
    },
  });
  document.addEventListener("torra:out", () => write(connection, WORDS.out));
  setInterval(look, Number(root.dataset.every));
  setInterval(tick, 1000);
  document.getElementById("live-freeze")?.addEventListener("click", () => setTimeout(look, 0));
}

if (!over) begin();
