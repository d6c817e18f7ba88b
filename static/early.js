// Puts the visitor's choices on the root element before anything is painted, so that no page flashes
// in the wrong colours. A classic script in the head, and the only one that blocks. Without storage,
// or without scripts, pages follow the system and the sheet's own colours.

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
