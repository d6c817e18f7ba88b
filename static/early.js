// What cannot wait for the modules. A classic script in the head, and the only one that blocks.
//
// Puts the visitor's choices on the root element before anything is painted, so that no page flashes
// in the wrong colours. Without storage, or without scripts, pages follow the system and the sheet's
// own colours.

(() => {
  const KEPT = "torra-preferences";
  const PLAIN = /^[a-z-]{1,20}$/;
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return JSON.parse(localStorage.getItem(KEPT)) ?? {};
    } catch {
      return {};
    }
  }

  function put() {
    for (const [name, value] of Object.entries(kept())) {
      if (PLAIN.test(name) && PLAIN.test(value)) root.dataset[name.replaceAll("-", "")] = value;
    }
    scheme();
  }

  function scheme() {
    const chosen = root.dataset.theme;
    const system = dark.matches ? "dark" : "light";
    root.dataset.scheme = chosen === "light" || chosen === "dark" ? chosen : system;
  }

  function tell(name) {
    document.dispatchEvent(new CustomEvent("torra:preferences", { detail: { name } }));
  }

  put();
  document.addEventListener("torra:preferences", scheme);
  dark.addEventListener("change", () => tell("scheme"));
  addEventListener("storage", (event) => {
    if (event.key !== KEPT) return;
    put();
    tell("all");
  });
})();

// A command that is given before commands.js runs would go off without its question: it is held here
// until the module says that it takes over. When the module does not come, the form works by itself,
// and the browser asks. What is urgent is never asked about, and goes at once.
(() => {
  const LONGEST = 3000; // milliseconds that a command is held
  const held = new Map(); // form: button
  let late = false;

  function hold(event) {
    const form = event.target;
    if (!form.matches("form[data-command]") || "urgent" in form.dataset) return;
    const question = form.dataset.confirm;
    if (late && (!question || confirm(question))) return;
    event.preventDefault();
    if (late) return;
    held.set(form, event.submitter);
    setTimeout(letGo, LONGEST);
  }

  function letGo() {
    late = true;
    const all = [...held];
    held.clear();
    for (const [form, button] of all) {
      if (form.isConnected) form.requestSubmit(button?.form === form ? button : null);
    }
  }

  function handOver() {
    document.removeEventListener("submit", hold);
    letGo();
  }

  document.addEventListener("submit", hold);
  document.addEventListener("torra:commands", handOver);
  addEventListener("load", letGo);
})();
