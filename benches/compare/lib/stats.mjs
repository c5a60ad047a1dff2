// Percentiles by nearest rank: with few samples an interpolated p99 would look better than it is.
export function percentile(samples, p) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)];
}

export function spread(samples) {
  return { p50: percentile(samples, 50), p99: percentile(samples, 99) };
}
