// The list of debates: loads itself anew when the desk tells that a tick began or ended, unless live
// updates are paused or somebody is at work on the page. Without this module it is as of its load.

const CALM = 1500; // milliseconds: several ticks at once are one load
let timer = 0;

function isPaused() {
  return document.getElementById("live-pause")?.getAttribute("aria-pressed") === "true";
}

function load() {
  const busy = document.querySelector("main")?.contains(document.activeElement) && document.activeElement.id !== "main";
  if (!isPaused() && !busy && !document.hidden) location.reload();
}

document.addEventListener("torra:changed", (event) => {
  if (!["tick", "running"].includes(event.detail?.what)) return;
  clearTimeout(timer);
  timer = setTimeout(load, CALM);
});
