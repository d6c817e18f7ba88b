// Finds a word in the help: rows and parts that do not hold it are hidden while something stands in
// the box. Without scripts the whole page is there and the box is not.

const box = document.getElementById("help-filter");
const found = document.getElementById("help-found");
const cards = [...document.querySelectorAll("main .prose > section")];

function fits(element, words) {
  const text = element.textContent.toLowerCase();
  return words.every((word) => text.includes(word));
}

function narrow() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let number = 0;
  for (const card of cards) {
    const rows = [...card.querySelectorAll("tbody tr")];
    const whole = card.querySelector("h2") && fits(card.querySelector("h2"), words);
    let inside = 0;
    for (const row of rows) {
      row.hidden = words.length > 0 && !whole && !fits(row, words);
      inside += row.hidden ? 0 : 1;
    }
    const shown = !words.length || whole || (rows.length ? inside > 0 : fits(card, words));
    card.hidden = !shown;
    if (shown) number += rows.length ? inside : 1;
  }
  found.textContent = words.length ? (number ? `${number} found` : "nothing found") : "";
}

document.getElementById("help-filter-row").hidden = false;
box.addEventListener("input", narrow);
