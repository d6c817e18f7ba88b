// Older bars of a chart beside those that its page refreshes: asked for by chart.js, joined here.
// Pure functions over the answers: candles, volume, lines over the price, times that have a tick.

// Returns the bars of two answers, the second one's where both have a bar; either may be missing.
export function joined(before, after) {
  if (!before || !after?.candles.length) return after ?? before;
  const first = after.candles[0].time;
  const end = before.candles.findIndex((candle) => candle.time >= first);
  const count = end < 0 ? before.candles.length : end;
  const head = (values) => values?.slice(0, count) ?? Array(count).fill(null);
  const over = {};
  for (const [name, columns] of Object.entries(after.over)) {
    over[name] = columns.map((values, column) => [...head(before.over[name]?.[column]), ...values]);
  }
  return {
    over,
    candles: [...head(before.candles), ...after.candles],
    volume: [...head(before.volume), ...after.volume],
    times: [...before.times, ...after.times],
  };
}

// Returns what is refreshed with the older bars before it; `linked` are all times that have a tick.
export function merged(older, data) {
  const whole = joined(older, data);
  return { ...data, ...whole, times: data.times, linked: new Set(whole.times) };
}
