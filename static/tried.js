// Tries settings on the last days of stored bars: asks for the job, tells how far it is, and loads
// what it found into the page without touching what was typed. Without this module the button
// answers with a page that leads to the job.

import { send } from "./commands.js";
import { renew } from "./live.js";

const ASK_AGAIN = 700; // milliseconds between two looks at the job
const GOES_ON = ["queued", "running", "retrying"];

function tell(text) {
  const place = document.getElementById("try-state");
  if (place && place.textContent !== text) place.textContent = text;
}

export async function tryNow(form, button) {
  button.disabled = true;
  tell("◌ asked for …");
  document.getElementById("tried").scrollIntoView({ block: "start" });
  try {
    const body = new URLSearchParams(new FormData(form));
    const { ok, told: reply } = await send({ address: form.dataset.try, body });
    if (ok) {
      await renew();
      await follow(form, reply.job);
    } else tell(`✕ ${reply.reason || reply.advice || "the desk refused"}`);
  } catch {
    tell("✕ the desk could not be reached.");
  }
  button.disabled = false;
  button.focus({ preventScroll: true });
}

export async function follow(form, number) {
  for (;;) {
    const answer = await fetch(`${form.dataset.jobs}/${number}`);
    if (!answer.ok) return tell("✕ the job is not there any more.");
    const { jobs: [job], desk_runs: works } = await answer.json();
    if (!GOES_ON.includes(job.state)) {
      await renew();
      return tell(job.state === "done" ? "● done" : `– ${job.state}`);
    }
    const far = job.total ? `, ${job.done} of ${job.total}` : "";
    if (!works) tell("◌ waits until a desk runs: torra run");
    else tell(job.state === "running" ? `◌ ${job.stage || "begins"}${far}` : `◌ ${job.state}`);
    await new Promise((wake) => setTimeout(wake, ASK_AGAIN));
  }
}
