// Older bars of a chart beside those that its page refreshes: asked for by chart.js, joined here.
// Pure functions over the answers: candles, volume, lines over the price, times that have a tick.

// Returns what is refreshed with the older bars before it; `linked` are all times that have a tick.
export function merged(older, data) {
  if (!older || !data.candles.length) return { ...data, linked: new Set(data.times) };
  const first = data.candles[0].time;
  const end = older.candles.findIndex((candle) => candle.time >= first);
  const count = end < 0 ? older.candles.length : end;
  const over = {};
  for (const [name, columns] of Object.entries(data.over)) {
    over[name] = columns.map((values, column) => [
      ...(older.over[name]?.[column]?.slice(0, count) ?? Array(count).fill(null)),
      ...values,
    ]);
  }
  return {
    ...data,
    over,
    candles: [...older.candles.slice(0, count), ...data.candles],
    volume: [...older.volume.slice(0, count), ...data.volume],
    linked: new Set([...older.times, ...data.times]),
  };
}

// Returns the bars of an answer before those that are older already.
export function joined(older, data) {
  const known = older ?? { candles: [], volume: [], over: {}, times: [] };
  const over = {};
  for (const [name, columns] of Object.entries(data.over)) {
    over[name] = columns.map((values, column) => [...values, ...(known.over[name]?.[column] ?? [])]);
  }
  return {
    over,
    candles: [...data.candles, ...known.candles],
    volume: [...data.volume, ...known.volume],
    times: [...data.times, ...known.times],
  };
}
