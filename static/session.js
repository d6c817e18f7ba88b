// What a page does when its visitor's session has ended: says it once in a banner, with the link
// that logs in and leads back here, and tells the other modules to stop asking
// (`torra:out` on the document). A desk that does not answer is another matter, and live.js's.

const SECONDS = 10;
let out = false;

export function isOut() {
  return out;
}

// Asks an address of the desk once whether it still knows this visitor, and reads nothing of it.
export async function refuses(url) {
  const asked = new AbortController();
  const late = setTimeout(() => asked.abort(), SECONDS * 1000);
  try {
    return (await fetch(url, { cache: "no-store", signal: asked.signal })).status === 401;
  } catch {
    return false; // nobody answers: that says nothing about the session
  } finally {
    clearTimeout(late);
    asked.abort();
  }
}

function link() {
  const made = document.createElement("a");
  const login = new URL(document.documentElement.dataset.login ?? "/login", location.href);
  login.searchParams.set("next", location.pathname + location.search);
  made.href = login.href;
  made.textContent = "log in again";
  return made;
}

// A banner, as for every other state of the desk: wherever the page is, and in its colours.
function banner() {
  const made = document.createElement("p");
  made.className = "banner warn";
  made.id = "logged-out";
  made.setAttribute("role", "status");
  document.getElementById("main").before(made);
  made.append("logged out: ", link());
}

export function leave() {
  if (out) return;
  out = true;
  banner();
  const state = document.getElementById("live-state");
  if (state) state.textContent = "✕ logged out";
  document.body.dataset.connection = "lost";
  const freeze = document.getElementById("live-freeze");
  if (freeze) freeze.hidden = true;
  document.dispatchEvent(new CustomEvent("torra:out"));
}
