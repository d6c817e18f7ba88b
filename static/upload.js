// Hands a file of bars in, in parts that are as small as any other request, and says how far it is.
// Without this module the form sends the file at once, which a small one survives.

import { send } from "./commands.js";
import { save, take } from "./storage.js";
import { keep, say } from "./toast.js";

const PART = 200000; // bytes
const LONGEST = 60000; // milliseconds that an answer may take: the last one reads the bars
const MEGABYTE = 1 << 20;

const HANDED_IN = "torra-handed-in"; // the file that the form above takes after the reload
const form = document.querySelector("form.upload");

// A file that was just handed in is chosen, and the symbol is the one of its name: MYCOIN_M15.csv.
function choose() {
  const name = take(HANDED_IN);
  const bars = document.getElementById("start-bars");
  if (!name || ![...(bars?.options ?? [])].some((option) => option.value === name)) return;
  bars.value = name;
  const [symbol] = name.split(/[_.]/);
  if (/^[A-Za-z0-9#-]{2,40}$/.test(symbol)) document.getElementById("start-symbol").value = symbol.toUpperCase();
}

choose();

async function handOver(fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  const { ok, code, told } = await send({ address: form.action, body }, LONGEST);
  if (!ok) throw new Error(told.reason || told.advice || `The desk answered ${code}.`);
  return told;
}

// Returns what the desk says of the whole file.
async function handIn(file, tell) {
  const parts = Math.max(1, Math.ceil(file.size / PART));
  let begun = "";
  for (let part = 0; part < parts - 1; part += 1) {
    const file_ = file.slice(part * PART, (part + 1) * PART);
    begun = (await handOver({ name: file.name, more: "1", begun, file: file_ })).begun;
    tell(`${Math.round((100 * (part + 1)) / parts)} % handed in`);
  }
  tell("The desk reads it …");
  return handOver({ name: file.name, begun, file: file.slice((parts - 1) * PART) });
}

async function run(file) {
  const told = document.getElementById("upload-told");
  const button = form.querySelector("button");
  const tell = (text) => (told.textContent = text);
  if (file.size > Number(form.dataset.most) * MEGABYTE) {
    return tell(`It has more than ${form.dataset.most} MB: cut its oldest bars off, or pack it.`);
  }
  button.setAttribute("aria-disabled", "true");
  form.setAttribute("aria-busy", "true");
  try {
    const { reason, name } = await handIn(file, tell);
    keep(reason, "done");
    save(HANDED_IN, name ?? file.name);
    location.reload();
  } catch (error) {
    const why = error.name === "TimeoutError" ? "no answer; look whether it is there" : error.message;
    tell(why);
    say(`Not taken. ${why}`, "alert");
  } finally {
    button.removeAttribute("aria-disabled");
    form.setAttribute("aria-busy", "false");
  }
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const [file] = form.elements.namedItem("file").files;
  if (file && form.getAttribute("aria-busy") !== "true") run(file);
});
