// Takes a token from the fragment of the address, which no server and no log ever sees, and exchanges
// it for a session. The fragment leaves the address, and the browser's history, at once.

const form = document.getElementById("login");
const state = document.getElementById("login-state");

const REFUSED = {
  401: "This is not a token of this desk: torra token shows them.",
  403: "The desk did not take this as coming from its own page. Load the page again.",
};

function told(answer) {
  if (answer.status !== 429) return REFUSED[answer.status] || `The desk answered ${answer.status}.`;
  return `Too many tries: wait ${answer.headers.get("Retry-After") || 60} seconds.`;
}

async function enter(token) {
  state.textContent = "Logging in …";
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ token, next: form.elements.next.value }),
    });
    if (answer.ok) location.replace((await answer.json()).next);
    else state.textContent = told(answer);
  } catch {
    state.textContent = "The desk does not answer. Is it running?";
  }
}

function fromFragment() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  enter(token);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  enter(form.elements.token.value.trim());
});
addEventListener("hashchange", fromFragment);
fromFragment();
