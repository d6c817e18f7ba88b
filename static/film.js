// Plays the scenes of a film one after the other, without sound: buttons, and the keys ← and → where
// nobody types and no video has the focus. Without this module all scenes stand below each other.

const film = document.querySelector("[data-film]");
const scenes = [...film.querySelectorAll("figure")];
const play = film.querySelector("[data-play]");
let at = 0;
let timer = 0;

function show(to) {
  at = (to + scenes.length) % scenes.length;
  scenes.forEach((scene, number) => { scene.hidden = number !== at; });
}

function run(going) {
  clearInterval(timer);
  timer = going ? setInterval(() => show(at + 1), 1000 * Number(film.dataset.film)) : 0;
  play.setAttribute("aria-pressed", String(going));
  play.textContent = going ? "❚❚ Pause" : "▶ Play";
}

function step(by) {
  run(false);
  show(at + by);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input, textarea, select, video, [contenteditable]")) return;
  if (event.key === "ArrowRight") step(1);
  else if (event.key === "ArrowLeft") step(-1);
  else return;
  event.preventDefault();
});
for (const button of film.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => step(Number(button.dataset.step)));
}
play.addEventListener("click", () => run(!timer));
play.parentElement.hidden = false;
show(0);
