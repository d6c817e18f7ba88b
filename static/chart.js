// Draws candles, markers, levels and scores with lightweight-charts from the answer of the chart's own
// address (`data-chart`), which is asked again when what is drawn has changed (`data-drawn`). Colours come from the style sheet, so the chart follows theme and palette, and
// times are told in the visitor's zone. A bar's figures stand above the chart as text: of the bar
// under the pointer or the keyboard's cursor, else of the newest. Its figures are also in a table.
// Older bars are asked for as one scrolls back. The chart of one moment draws the lines that the
// arguments of its tick cite.

import { joined, merged } from "./bars.js";
import { OVER, SCORES, candleOptions, colour, priceFormat, priceText, titlesOf, toneColour } from "./lines.js";
import { marked, markersOf, point } from "./markers.js";
import { chosen } from "./prefs.js";
import { write } from "./times.js";

const holder = document.getElementById("chart");
const legend = document.getElementById("chart-legend");
const said = document.getElementById("chart-said");
const choices = document.getElementById("chart-lines");
const overChoices = document.getElementById("chart-over");
const library = window.LightweightCharts;
const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const MINUS = "\u2212";
const LINES_KEPT = "torra-chart-lines";
const OVER_KEPT = "torra-chart-over";
const OLDER = 500; // bars that are asked for at once
const NEAR = 15; // bars from the left edge at which older ones are asked for

let drawn = null;
let shown = null; // what of the stream is drawn, as the page names it
let older = null; // bars before those that are asked for again
let asking = false;
let ended = false;
let plain = null; // as the desk answered
let last = null; // with the older bars
let cursor = null; // the bar that the keyboard is on, as a place in last.candles

function chartOptions() {
  const edge = { borderColor: colour("line") };
  return {
    autoSize: true,
    layout: {
      attributionLogo: false,
      background: { color: colour("surface") },
      textColor: colour("muted"),
      fontFamily: getComputedStyle(document.body).fontFamily,
      panes: { separatorColor: colour("line"), enableResize: false },
    },
    grid: { vertLines: { color: colour("grid") }, horzLines: { color: colour("grid") } },
    rightPriceScale: { ...edge, entireTextOnly: true, scaleMargins: { top: 0.12, bottom: 0.1 } },
    timeScale: { ...edge, timeVisible: true, secondsVisible: false, tickMarkFormatter: markOf },
    localization: { timeFormatter: momentOf },
    handleScroll: { vertTouchDrag: false },
    kineticScroll: { touch: !reduced.matches, mouse: false },
  };
}

function momentOf(seconds) {
  return write(chosen("zone"), seconds * 1000);
}

// What stands below the axis: the day where one begins, else the time.
function markOf(seconds, kind) {
  const text = momentOf(seconds);
  if (kind === library.TickMarkType.Year) return text.slice(0, 4);
  return kind < library.TickMarkType.Time ? text.slice(5, 10) : text.slice(11, 16);
}

function lineOptions(name, style, width) {
  return {
    color: colour(name),
    lineStyle: style,
    lineWidth: width,
    priceLineVisible: false,
    lastValueVisible: name === "ink",
    crosshairMarkerVisible: false,
    priceFormat: { type: "price", precision: 3, minMove: 0.001 },
    autoscaleInfoProvider: () => ({ priceRange: { minValue: -1, maxValue: 1 } }),
  };
}

function build(data) {
  holder.replaceChildren();
  const chart = library.createChart(holder, chartOptions());
  const candles = chart.addSeries(library.CandlestickSeries, candleOptions(data.digits, () => last.levels));
  const { Dashed, Solid } = library.LineStyle;
  if (!data.consensus.length) return { ...parts(chart, candles), consensus: null, l1: null };
  const l1 = chart.addSeries(library.LineSeries, lineOptions("muted", Dashed, 1), 1);
  const consensus = chart.addSeries(library.LineSeries, lineOptions("ink", Solid, 2), 1);
  chart.panes()[1].setStretchFactor(0.5);
  for (const side of ["buy", "sell"]) {
    const price = data.thresholds[side];
    if (price === null) continue;
    const tone = side === "buy" ? "up" : "down";
    consensus.createPriceLine({
      price,
      color: toneColour(tone),
      lineStyle: library.LineStyle.Dotted,
      lineWidth: 1,
      axisLabelVisible: false,
      title: side.toUpperCase(),
    });
  }
  return { ...parts(chart, candles), consensus, l1 };
}

// What every chart has: markers, what the pointer does, and places for lines.
function parts(chart, candles) {
  const markers = library.createSeriesMarkers(candles, []);
  chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
    if (range && range.from < NEAR) askOlder();
  });
  chart.subscribeCrosshairMove((event) => {
    tell(event.time === undefined ? newest() : placeOf(event.time));
    point(holder, event, last, momentOf);
  });
  chart.subscribeClick(({ hoveredObjectId }) => {
    const place = hoveredObjectId === undefined ? -1 : placeOf(Number(hoveredObjectId));
    if (place >= 0) open(place);
  });
  const volume = chart.addSeries(library.HistogramSeries, {
    priceScaleId: "",
    priceFormat: { type: "volume" },
    priceLineVisible: false,
    lastValueVisible: false,
  });
  volume.priceScale().applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
  return { chart, candles, volume, markers, lines: new Map(), over: new Map(), levels: [] };
}

// --- the lines over the price, and the volume -----------------------------------------------------

function chosenOver() {
  return [...(overChoices?.querySelectorAll("input:checked") ?? [])].map((box) => box.value);
}

function fillOver(data) {
  const wanted = new Set(chosenOver());
  for (const [name, all] of drawn.over) {
    if (wanted.has(name)) continue;
    for (const series of all) drawn.chart.removeSeries(series);
    drawn.over.delete(name);
  }
  for (const name of wanted) {
    const columns = data.over[name];
    if (!columns) continue;
    if (!drawn.over.has(name)) drawn.over.set(name, columns.map(() => overLine(name)));
    const titles = titlesOf(name, columns);
    drawn.over.get(name).forEach((series, column) => {
      series.setData(pointsOf(data, columns[column]));
      series.applyOptions({ title: titles[column], lastValueVisible: titles[column] !== "" });
    });
  }
  drawn.volume.setData(wanted.has("volume") ? volumeOf(data) : []);
}

function pointsOf(data, values) {
  return data.candles.map(({ time }, place) =>
    values[place] === null ? { time } : { time, value: values[place] },
  );
}

function volumeOf(data) {
  return data.candles.map(({ time, open: from, close }, place) => {
    const value = data.volume[place];
    return value === null ? { time } : { time, value, color: colour(close < from ? "zone" : "track") };
  });
}

function overLine(name) {
  const { tone, style } = OVER[name];
  return drawn.chart.addSeries(library.LineSeries, {
    color: colour(tone),
    lineStyle: library.LineStyle[style],
    lineWidth: 1,
    priceLineVisible: false,
    lastValueVisible: true,
    crosshairMarkerVisible: false,
    priceFormat: priceFormat(last.digits),
    autoscaleInfoProvider: () => null, // a line far away does not flatten the candles
  });
}

// --- older bars -----------------------------------------------------------------------------------

async function askOlder() {
  if (asking || ended || !holder.dataset.bars || !last?.candles.length) return;
  asking = true;
  holder.setAttribute("aria-busy", "true");
  try {
    const first = last.candles[0].time;
    const before = new Date(first * 1000).toISOString();
    const answer = await fetch(`${holder.dataset.bars}?before=${before}&limit=${OLDER}`, {
      headers: { Accept: "application/json" },
    });
    if (!answer.ok) throw new Error(String(answer.status));
    take(await answer.json(), first);
  } catch {
    ended = true; // scrolling goes on to end here; the next load of the page asks again
  } finally {
    asking = false;
    holder.removeAttribute("aria-busy");
  }
}

function take(data, first) {
  const added = data.candles.filter((candle) => candle.time < first).length;
  if (!added) {
    ended = true;
    return;
  }
  older = joined(older, data);
  if (cursor !== null) cursor += added;
  const scale = drawn.chart.timeScale();
  const range = scale.getVisibleLogicalRange();
  last = merged(older, plain);
  fill(last);
  scale.setVisibleLogicalRange({ from: range.from + added, to: range.to + added });
}

// --- the lines of single scores -------------------------------------------------------------------

function chosenLines() {
  return [...(choices?.querySelectorAll("input:checked") ?? [])].map((box) => box.value);
}

function fillLines(data) {
  const wanted = new Set(chosenLines());
  for (const [name, series] of drawn.lines) {
    if (wanted.has(name)) continue;
    drawn.chart.removeSeries(series);
    drawn.lines.delete(name);
  }
  for (const name of wanted) {
    if (!drawn.lines.has(name)) drawn.lines.set(name, scoreLine(name));
    const values = data.lines[name] ?? [];
    drawn.lines.get(name).setData(
      data.times.map((time, place) =>
        values[place] === null || values[place] === undefined
          ? { time }
          : { time, value: values[place] },
      ),
    );
  }
}

function scoreLine(name) {
  const { title, tone, style } = SCORES[name];
  const options = lineOptions(tone, library.LineStyle[style], 1);
  return drawn.chart.addSeries(
    library.LineSeries,
    { ...options, color: toneColour(tone), title, lastValueVisible: true },
    1,
  );
}

function keep(name, chosenOnes) {
  try {
    sessionStorage.setItem(name, chosenOnes.join(" "));
  } catch {
    // A browser without storage forgets the choice with the page.
  }
  if (!last || !drawn) return;
  fillLines(last);
  fillOver(last);
}

function recall(place, name, chosenOnes) {
  if (!place || !library) return;
  let known = null;
  try {
    known = sessionStorage.getItem(name);
  } catch {
    // see keep
  }
  for (const box of place.querySelectorAll("input")) {
    box.checked = known === null ? box.defaultChecked : known.split(" ").includes(box.value);
  }
  place.hidden = false;
  place.addEventListener("change", () => keep(name, chosenOnes()));
}

// --- one bar in words -----------------------------------------------------------------------------

function newest() {
  return cursor ?? (last?.candles.length ?? 0) - 1;
}

function placeOf(time) {
  return last ? last.candles.findIndex((candle) => candle.time === time) : -1;
}

function score(value) {
  if (value === null || value === undefined) return "—";
  const text = Math.abs(value).toFixed(3);
  if (Number(text) === 0) return text;
  return (value < 0 ? MINUS : "+") + text;
}

function valueAt(series, time) {
  return series.find((point) => point.time === time)?.value;
}

function wordsOf(place) {
  const bar = last.candles[place];
  const { time, open: from, high, low, close } = bar;
  const tick = last.told.length ? last.times.indexOf(time) : -1;
  const text = (value) => priceText(value, last.digits);
  const words = [
    momentOf(time),
    `open ${text(from)} high ${text(high)} low ${text(low)} close ${text(close)}`,
  ];
  if (tick < 0 && last.linked.has(time)) return words.join(", ");
  if (tick < 0) return [...words, "no tick for this bar"].join(", ");
  words.push(`consensus ${score(valueAt(last.consensus, time))}`);
  words.push(`without agents ${score(valueAt(last.l1, time))}`);
  for (const name of chosenLines()) {
    words.push(`${SCORES[name].title} ${score(last.lines[name]?.[tick])}`);
  }
  return [...words, last.told[tick], ...marked(last, time)].join(", ");
}

function tell(place) {
  if (!legend || !last?.candles[place]) return;
  const text = wordsOf(place);
  if (legend.dataset.told === text) return;
  legend.dataset.told = text;
  legend.hidden = false;
  legend.replaceChildren(text);
  if (last.linked.has(last.candles[place].time)) {
    const link = document.createElement("a");
    link.href = addressOf(place);
    link.textContent = "open this tick";
    legend.append(" ", link);
  }
}

function addressOf(place) {
  const iso = new Date(last.candles[place].time * 1000).toISOString();
  return `${holder.dataset.ticks}${iso.slice(0, 19)}Z`;
}

function open(place) {
  if (last.linked.has(last.candles[place].time)) location.assign(addressOf(place));
  else said.textContent = "no tick for this bar";
}

function fill(data) {
  drawn.candles.setData(data.candles);
  drawn.consensus?.setData(data.consensus);
  drawn.l1?.setData(data.l1);
  fillLines(data);
  fillOver(data);
  for (const level of drawn.levels) drawn.candles.removePriceLine(level);
  drawn.levels = data.levels.map((level) =>
    drawn.candles.createPriceLine({
      price: level.price,
      title: level.title,
      color: toneColour(level.tone),
      lineStyle: library.LineStyle.Dashed,
      lineWidth: 1,
      axisLabelVisible: true,
    }),
  );
  if (!drawn.fitted && data.candles.length) {
    const count = data.candles.length;
    const shown = Math.min(count, Math.max(40, Math.round(holder.clientWidth / 8)));
    drawn.chart.timeScale().setVisibleLogicalRange({ from: count - shown, to: count + 3 });
    drawn.fitted = true;
  }
  mark();
  if (!holder.matches(":hover")) tell(newest());
}

function mark() {
  if (drawn) drawn.markers.setMarkers(markersOf(last));
}

function draw(data) {
  if (!holder || !library) return;
  const on = cursor === null ? null : last.candles[cursor].time;
  plain = data;
  last = merged(older, data);
  if (on !== null) cursor = Math.max(0, placeOf(on)); // the bars have moved on, the cursor has not
  drawn ??= build(last);
  fill(last);
}

// --- asking for what is drawn ---------------------------------------------------------------------

async function look() {
  const wanted = holder.closest("[data-drawn]")?.dataset.drawn ?? "";
  if (wanted === shown) return;
  try {
    const answer = await fetch(holder.dataset.chart, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const { chart } = await answer.json();
    shown = wanted;
    if (chart.candles.length) draw(chart);
    else holder.textContent = "No bar of that moment is stored.";
  } catch {
    // a chart that is drawn stays: the page says that the desk does not answer
    if (!drawn) holder.textContent = "The chart could not be loaded.";
  }
}

// --- the keyboard's cursor ------------------------------------------------------------------------

function move(event) {
  if (!drawn || !last.candles.length || event.ctrlKey || event.altKey || event.metaKey) return;
  const end = last.candles.length - 1;
  const at = cursor ?? end;
  if (event.key === "Enter") {
    event.preventDefault();
    open(at);
    return;
  }
  const places = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: end };
  places.PageUp = at - 10;
  places.PageDown = at + 10;
  if (!(event.key in places)) return;
  event.preventDefault();
  cursor = cursor === null && event.key.startsWith("Arrow") ? end : places[event.key];
  cursor = Math.min(end, Math.max(0, cursor));
  showCursor();
}

function showCursor() {
  const bar = last.candles[cursor];
  const scale = drawn.chart.timeScale();
  const range = scale.getVisibleLogicalRange();
  const wide = range.to - range.from;
  if (cursor < range.from + 1) scale.setVisibleLogicalRange({ from: cursor - 1, to: cursor - 1 + wide });
  if (cursor > range.to - 1) scale.setVisibleLogicalRange({ from: cursor + 2 - wide, to: cursor + 2 });
  drawn.chart.setCrosshairPosition(bar.close, bar.time, drawn.candles);
  tell(cursor);
  said.textContent = wordsOf(cursor);
}

function leaveCursor() {
  cursor = null;
  drawn?.chart.clearCrosshairPosition();
}

function again() {
  if (!drawn) return;
  drawn.chart.remove();
  drawn = null;
  draw(plain);
}

if (holder && library) {
  holder.setAttribute("tabindex", "0");
  holder.setAttribute("role", "application");
  holder.addEventListener("keydown", move);
  holder.addEventListener("blur", leaveCursor);
  recall(choices, LINES_KEPT, chosenLines);
  // what a tick's arguments cite is chosen for each tick anew
  const ofMoment = holder.closest("[data-drawn]") === null;
  recall(overChoices, ofMoment ? `${OVER_KEPT} ${holder.dataset.chart}` : OVER_KEPT, chosenOver);
  look();
  document.addEventListener("torra:renewed", look);
}
document.addEventListener("torra:preferences", again);
dark.addEventListener("change", again);
