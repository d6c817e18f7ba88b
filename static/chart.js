// Draws candles, markers, levels and the consensus with lightweight-charts from the same answer that
// refreshes the page. Colours come from the style sheet, so the chart follows light and dark. The
// chart can be moved with the arrow keys; its figures are also in a table on the page.

const holder = document.getElementById("chart");
const library = window.LightweightCharts;
const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const SHAPES = {
  OPEN_BUY: { shape: "arrowUp", position: "belowBar" },
  OPEN_SELL: { shape: "arrowDown", position: "aboveBar" },
  CLOSE: { shape: "circle", position: "aboveBar" },
  REVERSE: { shape: "circle", position: "aboveBar" },
  EXIT: { shape: "circle", position: "belowBar" },
  BUY: { shape: "square", position: "belowBar" },
  SELL: { shape: "square", position: "aboveBar" },
};

const LETTER = 8; // pixels that a letter of a marker takes at most

let drawn = null;
let last = null;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function toneColour(tone) {
  return colour({ up: "up", down: "down", note: "note" }[tone] ?? "muted");
}

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
    timeScale: { ...edge, timeVisible: true, secondsVisible: false },
    handleScroll: { vertTouchDrag: false },
    kineticScroll: { touch: !reduced.matches, mouse: false },
  };
}

function candleOptions(digits) {
  const up = colour("up");
  const down = colour("down");
  return {
    // Hollow against filled as well as blue against orange: the direction needs no colour.
    upColor: colour("surface"),
    borderUpColor: up,
    wickUpColor: up,
    downColor: down,
    borderDownColor: down,
    wickDownColor: down,
    priceLineVisible: false,
    priceFormat: { type: "price", precision: digits, minMove: 10 ** -digits },
  };
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
  const candles = chart.addSeries(library.CandlestickSeries, candleOptions(data.digits));
  const { Dashed, Solid } = library.LineStyle;
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
  const markers = library.createSeriesMarkers(candles, []);
  chart.timeScale().subscribeVisibleLogicalRangeChange(() => mark());
  return { chart, candles, consensus, l1, markers, levels: [], fitted: false };
}

function fill(data) {
  drawn.candles.setData(data.candles);
  drawn.consensus.setData(data.consensus);
  drawn.l1.setData(data.l1);
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
}

function mark() {
  if (drawn) drawn.markers.setMarkers(markersOf(last));
}

// A text beside the edge of the chart would be cut: there the marker stands alone.
function roomFor(marker) {
  const scale = drawn.chart.timeScale();
  const place = scale.timeToCoordinate(marker.time);
  const half = (marker.text.length * LETTER) / 2;
  return place !== null && place >= half && place <= scale.width() - half;
}

function markersOf(data) {
  const known = new Set(data.candles.map((candle) => candle.time));
  return data.markers
    .filter((marker) => known.has(marker.time))
    .map((marker) => ({
      time: marker.time,
      color: toneColour(marker.tone),
      text: roomFor(marker) ? marker.text : "",
      ...(SHAPES[marker.kind] ?? SHAPES.CLOSE),
    }))
    .sort((one, other) => one.time - other.time);
}

function draw(data) {
  if (!holder || !library) return;
  last = data;
  drawn ??= build(data);
  fill(data);
}

function move(event) {
  const steps = { ArrowLeft: -5, ArrowRight: 5 }[event.key];
  if (!steps || !drawn) return;
  event.preventDefault();
  const scale = drawn.chart.timeScale();
  scale.scrollToPosition(scale.scrollPosition() + steps, !reduced.matches);
}

document.addEventListener("torra:data", (event) => draw(event.detail.chart));
holder?.addEventListener("keydown", move);
holder?.setAttribute("tabindex", "0");
dark.addEventListener("change", () => {
  if (!drawn) return;
  drawn.chart.remove();
  drawn = null;
  draw(last);
});
