// Puts what is wrong with a request beside the field that it is about. Without this module the page
// that answers the form says the same.

const form = document.querySelector("form.start");

function tell(name, text) {
  for (const place of form.querySelectorAll("[data-fault]")) {
    const wrong = place.dataset.fault === name;
    place.hidden = !wrong;
    place.textContent = wrong ? text : "";
    const field = form.elements.namedItem(place.dataset.fault);
    if (wrong) {
      field?.setAttribute("aria-invalid", "true");
      field?.focus();
    } else field?.removeAttribute("aria-invalid");
  }
}

document.addEventListener("torra:command", ({ detail }) => {
  if (!form || detail.form !== form) return;
  const { field, reason } = detail.answer ?? {};
  tell(field, field ? String(reason).slice(field.length + 2) : "");
});
