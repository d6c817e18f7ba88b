// What a visitor may choose: theme, colours, zone of the times, how often to be asked, single keys.
// Kept by the browser for this address and nowhere else; without storage a choice lasts for the page.
// early.js puts what is kept on the root element; whoever shows something listens to
// `torra:preferences` on the document.

import { make, show } from "./dialog.js";
import { control } from "./notices.js";
import { BROWSER, save } from "./storage.js";

const KEPT = "torra-preferences";
const root = document.documentElement;

// name -> title, explanation, [value, words] with the one that holds unless another was chosen first.
export const CHOICES = {
  theme: ["Theme", "", [["system", "as the system"], ["light", "light"], ["dark", "dark"]]],
  palette: [
    "Colours",
    "A glyph and a word always say the same.",
    [
      ["blue-orange", "blue is up, orange is down"],
      ["classic", "green is up, red is down"],
      ["red-up", "red is up, green is down"],
    ],
  ],
  zone: [
    "Times",
    "Point at a time to see all three.",
    [["utc", "UTC"], ["broker", "the broker's server"], ["local", "this computer"]],
  ],
  confirm: [
    "Asking again",
    "Halt is never asked about.",
    [["marked", "before what cannot be taken back"], ["every", "before every command"]],
  ],
  keys: ["Single keys", "", [["on", "on"], ["off", "off"]]],
};

export function chosen(name) {
  const known = CHOICES[name][2].map(([value]) => value);
  const value = root.dataset[name];
  return known.includes(value) ? value : known[0];
}

export function choose(name, value) {
  root.dataset[name] = value;
  keep();
  document.dispatchEvent(new CustomEvent("torra:preferences", { detail: { name, value } }));
}

function keep() {
  const all = Object.keys(CHOICES).map((name) => [name, chosen(name)]);
  save(KEPT, JSON.stringify(Object.fromEntries(all)), BROWSER);
}

function group(name) {
  const [title, more, values] = CHOICES[name];
  const rows = values.map(([value, words]) => {
    const checked = chosen(name) === value;
    return make("label", {}, make("input", { type: "radio", name, value, checked }), ` ${words}`);
  });
  const told = more ? [make("p", { class: "muted" }, more)] : [];
  return make("fieldset", {}, make("legend", {}, title), ...told, ...rows);
}

export function openPreferences() {
  const notices = control();
  const groups = [...Object.keys(CHOICES).map(group), ...(notices ? [notices] : [])];
  const content = make("div", { class: "preferences" }, ...groups);
  content.addEventListener("change", (event) => choose(event.target.name, event.target.value));
  return show("Display and keys", [content]);
}
