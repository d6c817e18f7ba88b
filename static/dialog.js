// A dialog that holds given elements: closes with Esc and with its button, gives the focus back to
// where it was, and leaves nothing behind. One at a time: a second one replaces the first.

let open = null;

// Makes an element: make("p", {class: "muted"}, "text", child, ...). Text stays text.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

export function isOpen() {
  return open !== null;
}

// Shows a dialog and returns a promise of how it was closed: the value of a button, or "".
export function show(title, content, buttons = [["", "Close"]]) {
  open?.close();
  const before = document.activeElement;
  const head = make("h2", { id: "dialog-title" }, title);
  const choices = buttons.map(([value, word, look]) =>
    make("button", { value, ...(look && { class: look }) }, word),
  );
  const form = make("form", { method: "dialog" }, ...content, make("p", { class: "choices" }, ...choices));
  const dialog = make("dialog", { "aria-labelledby": head.id }, head, form);
  document.body.append(dialog);
  open = dialog;
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (open === dialog) open = null;
      if (before?.isConnected) before.focus({ preventScroll: true });
      answer(dialog.returnValue);
    });
  });
}
