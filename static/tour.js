// Notes that a page of the first steps was opened, once for a home. When it cannot be noted, the step
// stays open, and nothing else happens.

const place = document.getElementById("tour-seen");

if (place) {
  fetch(place.dataset.post, {
    method: "POST",
    headers: { Accept: "application/json", "X-Torra-CSRF": document.documentElement.dataset.csrf ?? "" },
    body: new URLSearchParams({ what: "seen", step: place.dataset.step }),
    redirect: "error",
  }).catch(() => {});
}
