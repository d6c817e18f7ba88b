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

// The lines over the price: each with a dash of its own and a title at its end, besides a colour.
export const OVER = {
  mean20: { title: "20", tone: "link", style: "Solid" },
  mean50: { title: "50", tone: "warn", style: "Solid" },
  mean200: { title: "200", tone: "alert", style: "Solid" },
  bollinger: { title: "BB", tone: "muted", style: "Dashed" },
  cloud: { title: "cloud", tone: "note", style: "Dotted" },
  levels: { title: "S/R", tone: "ink", style: "LargeDashed" },
  swings: { title: "swing", tone: "edge", style: "SparseDotted" },
};

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
    priceFormat: { type: "price", precision: digits, minMove: 10 ** -digits },
    autoscaleInfoProvider: (original) => withLevels(original(), levelsNow()),
  };
}
