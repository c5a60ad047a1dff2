// The end of a text as pi shows it: whole lines, at most 2,000 of them and at most 50 KiB.
export const MAX_LINES = 2000;
export const MAX_BYTES = 50 * 1024;

export function truncateTail(text, { maxLines = MAX_LINES, maxBytes = MAX_BYTES } = {}) {
  const totalBytes = Buffer.byteLength(text);
  const lines = text.split('\n');
  if (lines.length > 1 && lines.at(-1) === '') lines.pop();
  const result = { truncated: false, truncatedBy: null, lastLinePartial: false };
  Object.assign(result, { totalLines: lines.length, totalBytes, maxLines, maxBytes });
  if (lines.length <= maxLines && totalBytes <= maxBytes) {
    const same = { content: text, outputLines: lines.length, outputBytes: totalBytes };
    return { ...result, ...same, firstLineExceedsLimit: false };
  }
  const kept = [];
  let size = 0;
  let by = 'lines';
  for (let i = lines.length - 1; i >= 0 && kept.length < maxLines; i--) {
    const cost = Buffer.byteLength(lines[i]) + (kept.length > 0 ? 1 : 0);
    if (size + cost > maxBytes) {
      by = 'bytes';
      if (kept.length === 0) {
        kept.push(Buffer.from(lines[i]).subarray(-maxBytes).toString());
        result.lastLinePartial = true;
      }
      break;
    }
    kept.push(lines[i]);
    size += cost;
  }
  const content = kept.reverse().join('\n');
  const shown = { content, outputLines: kept.length, outputBytes: Buffer.byteLength(content) };
  return { ...result, ...shown, truncated: true, truncatedBy: by, firstLineExceedsLimit: false };
}
