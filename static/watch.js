// Follows a debate while it runs: each event of its stream has the page renewed, so that what is shown
// is the same with the stream, without it, and after a reload. Clocks run beside those who are at
// work, the log stays at its end for whoever reads there, and who wishes it goes on to the tick once
// it is decided. Frozen with the other live updates. Without this module the page shows the debate as
// of its load.

import { isOut } from "./session.js";
import { load, save } from "./storage.js";
import { follow } from "./stream.js";

const root = document.getElementById("debate");
const room = document.getElementById("log-room");
const moveOn = document.getElementById("move-on");
const connection = document.getElementById("connection");
const MOVE = "torra-watch-moves";
const WORDS = {
  live: "● live",
  polling: "● asks every few seconds",
  unanswered: "◷ the desk does not answer",
  frozen: "‖ frozen",
  ended: "ended",
  out: "logged out",
};

let streaming = "";
let loaded = performance.now();
let below = true; // whether the end of the log is in sight

function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

function isFrozen() {
  return document.getElementById("live-freeze")?.getAttribute("aria-pressed") === "true";
}

function tell() {
  if (isOut()) write(connection, WORDS.out);
  else if (isFrozen()) write(connection, WORDS.frozen);
  else if (document.body.dataset.connection === "lost") write(connection, WORDS.unanswered);
  else write(connection, WORDS[streaming] ?? WORDS.polling);
}

function runClocks() {
  tell();
  const since = (performance.now() - loaded) / 1000;
  if (isFrozen() || isOut()) return;
  for (const clock of root.querySelectorAll("[data-elapsed]")) {
    write(clock, `${Math.floor(Number(clock.dataset.elapsed) + since)} s`);
  }
}

function begin() {
  const move = document.getElementById("move");
  move.hidden = false;
  moveOn.checked = load(MOVE) === "1";
  moveOn.addEventListener("change", () => save(MOVE, moveOn.checked ? "1" : "0"));
  const stream = follow(root.dataset.stream, {
    onEnvelope: () => document.dispatchEvent(new CustomEvent("torra:changed")),
    onState: (state) => {
      streaming = state;
      tell();
    },
  });
  const clocks = setInterval(runClocks, 1000);
  document.addEventListener("torra:out", tell);
  document.addEventListener("torra:fresh", () => {
    below = room.scrollHeight - room.scrollTop - room.clientHeight < 40;
  });
  document.addEventListener("torra:renewed", function renewed() {
    loaded = performance.now();
    if (below) room.scrollTop = room.scrollHeight;
    if (!root.dataset.end) return;
    document.removeEventListener("torra:renewed", renewed);
    stream.close();
    clearInterval(clocks);
    move.hidden = true;
    write(connection, WORDS.ended);
    const tick = document.getElementById("to-tick");
    if (root.dataset.end === "decision" && moveOn.checked && !tick.hidden) location.assign(tick.href);
  });
}

if (!root.dataset.end) begin();
