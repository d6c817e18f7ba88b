// The markers of a chart: their shapes, what they stand for, and a tip beside the one under the
// pointer. They have no text of their own, which would lie on candles and on other markers.

import { toneColour } from "./lines.js";

const SHAPES = {
  OPEN_BUY: { shape: "arrowUp", position: "belowBar" },
  OPEN_SELL: { shape: "arrowDown", position: "aboveBar" },
  CLOSE: { shape: "circle", position: "aboveBar" },
  REVERSE: { shape: "circle", position: "aboveBar" },
  EXIT: { shape: "circle", position: "belowBar" },
  BUY: { shape: "square", position: "belowBar" },
  SELL: { shape: "square", position: "aboveBar" },
};

const HELD_BACK = { BUY: "buy signal, not traded", SELL: "sell signal, not traded" };
const ASIDE = 14; // pixels between the pointer and what is said of the marker under it

export function markersOf(data) {
  const known = new Set(data.candles.map((candle) => candle.time));
  return data.markers
    .filter((marker) => known.has(marker.time))
    .map((marker) => ({
      id: String(marker.time),
      time: marker.time,
      color: toneColour(marker.tone),
      ...(SHAPES[marker.kind] ?? SHAPES.CLOSE),
    }))
    .sort((one, other) => one.time - other.time);
}

// What the markers of a bar stand for, in words.
export function marked(data, time) {
  const found = data.markers.filter((marker) => marker.time === time);
  return [...new Set(found.map((marker) => HELD_BACK[marker.kind] ?? marker.text).filter(Boolean))];
}

function tipOf(holder) {
  const found = holder.querySelector(".chart-tip");
  if (found) return found;
  const tip = document.createElement("p");
  tip.className = "chart-tip";
  holder.append(tip);
  return tip;
}

// Says beside the pointer what the marker under it stands for.
export function point(holder, { point: where, hoveredObjectId }, data, momentOf) {
  const tip = tipOf(holder);
  const time = Number(hoveredObjectId);
  const words = where && hoveredObjectId !== undefined ? marked(data, time) : [];
  tip.hidden = words.length === 0;
  if (tip.hidden) return;
  const opens = data.linked.has(time) ? ": a click opens its tick" : "";
  tip.textContent = `${words.join(", ")}, ${momentOf(time)}${opens}`;
  const right = holder.clientWidth - tip.offsetWidth - 4;
  tip.style.left = `${Math.max(4, Math.min(where.x + ASIDE, right))}px`;
  tip.style.top = `${Math.max(4, where.y - tip.offsetHeight - ASIDE)}px`;
}
