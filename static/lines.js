// How the chart looks: its colours, which the sheets name, its candles, the scores in the lower pane,
// and what arguments cite over the price.

// Each score has its own dash and a title at its end, besides a colour.
export const SCORES = {
  price_action: { title: "PA", tone: "note", style: "Solid" },
  key_levels: { title: "KL", tone: "note", style: "Dotted" },
  momentum: { title: "MO", tone: "up", style: "LargeDashed" },
  structure: { title: "ST", tone: "down", style: "SparseDotted" },
  ath: { title: "REC", tone: "muted", style: "Dotted" },
};

// The lines over the price: each with a dash of its own and titles at its ends, besides a colour: of
// two edges the lower one's first.
export const OVER = {
  mean20: { titles: ["20"], tone: "link", style: "Solid" },
  mean50: { titles: ["50"], tone: "warn", style: "Solid" },
  mean200: { titles: ["200"], tone: "alert", style: "Solid" },
  bollinger: { titles: ["BB low", "BB high"], tone: "muted", style: "Dashed" },
  cloud: { titles: ["cloud bottom", "cloud top"], tone: "note", style: "Dotted" },
  levels: { titles: ["support", "resistance"], tone: "ink", style: "LargeDashed" },
  swings: { titles: ["swing low", "swing high"], tone: "edge", style: "SparseDotted" },
};

// Returns the title of each column of a line: which edge of the cloud is the upper one changes. One
// that has no value at the newest bar has none: a resistance that price has broken is none any more.
export function titlesOf(name, columns) {
  const [low, high] = OVER[name].titles;
  const now = columns.map((values) => values.at(-1) ?? null);
  const titles = columns.length < 2 ? [low] : (now[0] ?? 0) > (now[1] ?? Infinity) ? [high, low] : [low, high];
  return titles.map((title, column) => (now[column] === null ? "" : title));
}

// How a price is written: with its symbol's decimals, as everywhere on the pages.
export function priceText(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function priceFormat(digits) {
  return { type: "custom", formatter: (value) => priceText(value, digits), minMove: 10 ** -digits };
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function toneColour(tone) {
  return colour({ up: "up", down: "down", note: "note" }[tone] ?? "muted");
}

// Levels are in sight beside the candles, unless they lie so far that these would be flat.
const FARTHEST = 3; // times the height of the candles

function withLevels(told, levels) {
  if (!told?.priceRange) return told;
  const { minValue, maxValue } = told.priceRange;
  const far = (maxValue - minValue) * FARTHEST;
  const seen = levels.map((level) => level.price).filter((price) => price > minValue - far && price < maxValue + far);
  return { ...told, priceRange: { minValue: Math.min(minValue, ...seen), maxValue: Math.max(maxValue, ...seen) } };
}

export function candleOptions(digits, levelsNow) {
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
    priceFormat: priceFormat(digits),
    autoscaleInfoProvider: (original) => withLevels(original(), levelsNow()),
  };
}
