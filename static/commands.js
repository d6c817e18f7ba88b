// Sends a form[data-command] without leaving the page and says what became of it, with the reason.
// While it runs its buttons do nothing; the focus stays where it was. When nobody answers, that is
// said as it is: the command may have arrived. Without this module the form works by itself.
//
// data-confirm: a question that is asked first (early.js sees to it until this module runs).
// data-urgent: never asked about, told at once.
// data-missing: what is said beside a field that is empty and must not be.
// data-then: reload (the message and the focus survive it) or none.

import { make, show } from "./dialog.js";
import { chosen } from "./prefs.js";
import { save, take } from "./storage.js";
import { keep, say, sayKept } from "./toast.js";

const LONGEST = 30000; // milliseconds that an answer may take
const SLOW = 700; // milliseconds after which the page says that the command runs
const TOLD = "torra-told"; // the form whose button has the focus after a reload
const REFUSED = {
  400: "the desk could not read it.",
  401: "you are logged out. Log in again, then repeat it.",
  403: "this token may not do that, or the page is too old: load it again.",
  404: "it is not there any more.",
  409: "it was decided or changed in the meantime. Load the page again.",
  413: "it is more than the desk takes.",
  429: "too often. Wait a minute and try again.",
  503: "the database cannot be read. Run: torra doctor",
};
const running = new WeakSet();

function wordOf(form, button) {
  const named = form.dataset.command || button?.getAttribute("aria-label") || button?.textContent;
  return (named || "Command").replace(/[^\p{L}\p{N}\s.,:'()+-]/gu, "").trim();
}

async function agreed(form, button, word) {
  const question = button?.dataset.confirm ?? form.dataset.confirm;
  const ask = question || (chosen("confirm") === "every" && !("urgent" in form.dataset));
  if (!ask) return true;
  const content = [make("p", {}, question || `${word}?`)];
  const answer = await show("Please confirm", content, [["", "Cancel"], ["yes", word, "primary"]]);
  return answer === "yes";
}

function busy(form, on) {
  for (const button of form.querySelectorAll("button")) {
    if (on) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
  form.setAttribute("aria-busy", String(on));
}

// What a button sends, as it stands where it is pressed: the page may change while a question is open.
function commandOf(form, button) {
  // formAction of a button without the attribute is the page's own address
  const address = button?.hasAttribute("formaction") ? button.formAction : form.action;
  return { address, body: new URLSearchParams(new FormData(form, button)) };
}

// Sends a command; returns whether it was taken, the HTTP code and what the desk says.
export async function send({ address, body }, longest = LONGEST) {
  const answer = await fetch(address, {
    method: "POST",
    headers: {
      Accept: "application/json",
      "X-Torra-CSRF": document.documentElement.dataset.csrf ?? "",
    },
    body,
    redirect: "error",
    signal: AbortSignal.timeout(longest),
  });
  const isJson = (answer.headers.get("Content-Type") ?? "").includes("json");
  const told = isJson ? await answer.json() : {};
  return { ok: answer.ok, code: answer.status, told };
}

function outcome(word, { ok, code, told }) {
  const reason = told.reason || told.advice || "";
  if (ok) {
    const status = told.status === "running" || told.status === "accepted" ? told.status : "done";
    const text = reason ? `${word}: ${status}. ${capital(reason)}` : `${word}: ${status}.`;
    return { text, tone: status === "done" ? "done" : "running" };
  }
  const why = reason || REFUSED[code] || `the desk answered ${code}; its log says why.`;
  return { text: `${word}: failed. ${capital(why)}`, tone: "alert" };
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function unheard(word, error) {
  const why =
    error.name === "TimeoutError"
      ? `no answer for ${LONGEST / 1000} s`
      : "the desk could not be reached";
  return {
    text: `${word}: ${why}. It is not known whether the command arrived: look before you repeat it.`,
    tone: "alert",
  };
}

async function run(form, button) {
  if (running.has(form)) return;
  running.add(form);
  const word = wordOf(form, button);
  const command = commandOf(form, button);
  try {
    if (await agreed(form, button, word)) await carryOut(form, command, word);
  } finally {
    running.delete(form);
    if (document.activeElement === document.body) button?.focus({ preventScroll: true });
  }
}

async function carryOut(form, command, word) {
  let quiet = () => {};
  const slow = setTimeout(() => (quiet = say(`${word}: running …`, "running")), SLOW);
  busy(form, true);
  let answer = null;
  let shown;
  try {
    answer = await send(command);
    shown = outcome(word, answer);
  } catch (error) {
    shown = unheard(word, error);
  } finally {
    clearTimeout(slow);
    quiet();
    busy(form, false);
  }
  finish(form, answer, shown);
}

function finish(form, answer, shown) {
  const ok = answer?.ok ?? false;
  const detail = { form, answer: answer?.told ?? null, ok };
  const told = new CustomEvent("torra:command", { detail, cancelable: true });
  const goOn = document.dispatchEvent(told);
  if (ok && goOn && form.dataset.then === "reload") return reload(form, shown);
  say(shown.text, shown.tone, { urgent: "urgent" in form.dataset });
}

function reload(form, shown) {
  keep(shown.text, shown.tone);
  save(TOLD, form.getAttribute("action"));
  location.reload();
}

// Puts the focus back to the form of the command that the page was loaded anew for.
function focusAfterReload() {
  const action = take(TOLD);
  if (action === null) return;
  const forms = [...document.querySelectorAll("form[data-command]")];
  const same = forms.find((form) => form.getAttribute("action") === action);
  const target = same?.querySelector("button") ?? document.getElementById("main");
  target?.focus({ preventScroll: true });
}

// Says beside a field what is missing, in our words and where a screen reader finds it.
function missing(event) {
  const field = event.target;
  if (!field.closest("form[data-command]") || !field.dataset.missing) return;
  event.preventDefault();
  const id = `${field.id}-missing`;
  if (!document.getElementById(id)) {
    field.after(make("span", { id, class: "missing", role: "alert" }, field.dataset.missing));
    field.setAttribute("aria-describedby", id);
  }
  field.setAttribute("aria-invalid", "true");
  field.focus();
}

function filled(event) {
  const told = document.getElementById(`${event.target.id}-missing`);
  if (!told || !event.target.validity.valid) return;
  told.remove();
  event.target.removeAttribute("aria-invalid");
  event.target.removeAttribute("aria-describedby");
}

export function start() {
  document.addEventListener("invalid", missing, true); // it does not bubble
  document.addEventListener("input", filled);
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !form.matches("form[data-command]")) return;
    event.preventDefault();
    run(form, event.submitter);
  });
  document.dispatchEvent(new CustomEvent("torra:commands")); // early.js lets go what it held
  focusAfterReload();
  sayKept();
}
