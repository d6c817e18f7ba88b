// Takes a token from the fragment of the address, which no server and no log ever sees, and exchanges
// it for a session. The fragment leaves the address at once.

const form = document.getElementById("login");
const state = document.getElementById("login-state");
const token = new URLSearchParams(location.hash.slice(1)).get("token");

async function enter(value) {
  const answer = await fetch(form.action, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: value, next: form.elements.next.value }),
  });
  if (!answer.ok) {
    state.textContent = "This token is not one of this desk's: torra token shows them.";
    return;
  }
  location.replace((await answer.json()).next);
}

if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  enter(token);
}
