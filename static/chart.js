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
import { load, save } from "./storage.js";
import { write } from "./times.js";

const library = window.LightweightCharts;
const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const MINUS = "\u2212";
const LINES_KEPT = "torra-chart-lines";
const OVER_KEPT = "torra-chart-over";
const OLDER = 500; // bars that are asked for at once
const NEAR = 15; // bars from the left edge at which older ones are asked for

let holder = null;
let legend, said, choices, overChoices; // what stands around the holder
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
  const parts = { chart, candles, lines: new Map(), over: new Map(), levels: [] };
  if (data.consensus.length) addScores(parts, data.thresholds);
  parts.markers = library.createSeriesMarkers(candles, []);
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
  parts.volume = chart.addSeries(library.HistogramSeries, {
    priceScaleId: "",
    priceFormat: { type: "volume" },
    priceLineVisible: false,
    lastValueVisible: false,
  });
  parts.volume.priceScale().applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
  return parts;
}

// The scores below the price, between the thresholds.
function addScores(parts, thresholds) {
  const { Dashed, Dotted, Solid } = library.LineStyle;
  parts.l1 = parts.chart.addSeries(library.LineSeries, lineOptions("muted", Dashed, 1), 1);
  parts.consensus = parts.chart.addSeries(library.LineSeries, lineOptions("ink", Solid, 2), 1);
  parts.chart.panes()[1].setStretchFactor(0.5);
  for (const [side, tone] of [["buy", "up"], ["sell", "down"]]) {
    if (thresholds[side] === null) continue;
    parts.consensus.createPriceLine({
      price: thresholds[side],
      color: toneColour(tone),
      lineStyle: Dotted,
      lineWidth: 1,
      axisLabelVisible: false,
      title: side.toUpperCase(),
    });
  }
}

// --- what a person chooses: lines over the price, the volume, single scores -----------------------

function chosenIn(boxes) {
  return [...(boxes?.querySelectorAll("input:checked") ?? [])].map((box) => box.value);
}

// Draws the lines that are wanted, each with its series, and takes away the others.
function renewLines(known, wanted, make) {
  for (const [name, all] of known) {
    if (wanted.includes(name)) continue;
    for (const series of all) drawn.chart.removeSeries(series);
    known.delete(name);
  }
  for (const name of wanted) if (!known.has(name)) known.set(name, make(name));
}

function fillLines(data) {
  renewLines(drawn.lines, chosenIn(choices), (name) => [scoreLine(name)]);
  for (const [name, [series]] of drawn.lines) series.setData(pointsOf(data.times, data.lines[name] ?? []));
  const wanted = chosenIn(overChoices);
  const lines = wanted.filter((name) => data.over[name]);
  renewLines(drawn.over, lines, (name) => data.over[name].map(() => overLine(name)));
  const times = data.candles.map((candle) => candle.time);
  for (const [name, all] of drawn.over) {
    const titles = titlesOf(name, data.over[name]);
    all.forEach((series, column) => {
      series.setData(pointsOf(times, data.over[name][column]));
      series.applyOptions({ title: titles[column], lastValueVisible: titles[column] !== "" });
    });
  }
  drawn.volume.setData(wanted.includes("volume") ? volumeOf(data) : []);
}

function pointsOf(times, values) {
  return times.map((time, place) => ((values[place] ?? null) === null ? { time } : { time, value: values[place] }));
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

function scoreLine(name) {
  const { title, tone, style } = SCORES[name];
  const options = { ...lineOptions(tone, library.LineStyle[style], 1), color: toneColour(tone), title };
  return drawn.chart.addSeries(library.LineSeries, { ...options, lastValueVisible: true }, 1);
}

// Ticks the boxes that were chosen before, and keeps each later choice as long as the window.
function recall(boxes, name) {
  if (!boxes || !library) return;
  const known = load(name);
  for (const box of boxes.querySelectorAll("input")) {
    box.checked = known === null ? box.defaultChecked : known.split(" ").includes(box.value);
  }
  boxes.hidden = false;
  boxes.onchange = () => {
    save(name, chosenIn(boxes).join(" "));
    if (last && drawn) fillLines(last);
  };
}

// --- older bars -----------------------------------------------------------------------------------

async function askOlder() {
  if (asking || ended || !holder.dataset.bars || !last?.candles.length) return;
  asking = true;
  const asker = holder;
  holder.setAttribute("aria-busy", "true");
  try {
    const first = last.candles[0].time;
    const before = new Date(first * 1000).toISOString();
    const answer = await fetch(`${holder.dataset.bars}?before=${before}&limit=${OLDER}`, {
      headers: { Accept: "application/json" },
    });
    if (!answer.ok) throw new Error(String(answer.status));
    const data = await answer.json();
    if (asker === holder) take(data, first);
  } catch {
    if (asker === holder) ended = true; // scrolling goes on to end here; the next load of the page asks again
  } finally {
    if (asker === holder) asking = false;
    asker.removeAttribute("aria-busy");
  }
}

function take(data, first) {
  const added = data.candles.filter((candle) => candle.time < first).length;
  if (!added) {
    ended = true;
    return;
  }
  older = joined(data, older);
  if (cursor !== null) cursor += added;
  const scale = drawn.chart.timeScale();
  const range = scale.getVisibleLogicalRange();
  last = merged(older, plain);
  fill(last);
  scale.setVisibleLogicalRange({ from: range.from + added, to: range.to + added });
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
  const prices = `open ${text(from)} high ${text(high)} low ${text(low)} close ${text(close)}`;
  const words = [momentOf(time), prices];
  if (tick < 0) return (last.linked.has(time) ? words : [...words, "no tick for this bar"]).join(", ");
  words.push(`consensus ${score(valueAt(last.consensus, time))}`);
  words.push(`without agents ${score(valueAt(last.l1, time))}`);
  for (const name of chosenIn(choices)) {
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
  drawn.markers.setMarkers(markersOf(last));
  if (!holder.matches(":hover")) tell(newest());
}

function draw(data) {
  const on = cursor === null ? null : last.candles[cursor].time;
  plain = data;
  last = merged(older, data);
  if (on !== null) cursor = Math.max(0, placeOf(on)); // the bars have moved on, the cursor has not
  drawn ??= build(last);
  fill(last);
}

// --- asking for what is drawn ---------------------------------------------------------------------

async function look() {
  begin();
  const asker = holder;
  const wanted = holder.closest("[data-drawn]")?.dataset.drawn ?? "";
  if (wanted === shown) return;
  try {
    const answer = await fetch(holder.dataset.chart, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const { chart } = await answer.json();
    if (asker !== holder) return;
    shown = wanted;
    if (chart.candles.length) draw(chart);
    else holder.textContent = "No bar of that moment is stored.";
  } catch {
    // a chart that is drawn stays: the page says that the desk does not answer
    if (!drawn && asker === holder) holder.textContent = "The chart could not be loaded.";
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
  const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 10, PageDown: at + 10 };
  const places = { ...steps, Home: 0, End: end };
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

// Takes the chart of the page, which is another one once its address is another.
function begin() {
  const now = document.getElementById("chart");
  if (!now || now === holder) return;
  drawn?.chart.remove();
  [holder, drawn, shown, older, plain, last, cursor] = [now, null, null, null, null, null, null];
  asking = ended = false;
  [legend, said, choices, overChoices] = ["legend", "said", "lines", "over"].map((name) =>
    document.getElementById(`chart-${name}`),
  );
  holder.setAttribute("tabindex", "0");
  holder.setAttribute("role", "application");
  holder.addEventListener("keydown", move);
  holder.addEventListener("blur", leaveCursor);
  recall(choices, LINES_KEPT);
  // what a tick's arguments cite is chosen for each tick anew
  const ofMoment = holder.closest("[data-drawn]") === null;
  recall(overChoices, ofMoment ? `${OVER_KEPT} ${holder.dataset.chart}` : OVER_KEPT);
}

if (document.getElementById("chart") && library) {
  look();
  document.addEventListener("torra:renewed", look);
}
document.addEventListener("torra:preferences", again);
dark.addEventListener("change", again);
