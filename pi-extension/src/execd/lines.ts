/** The longest line that is taken from execd, whose own bound for a reply is far below. */
export const LINE_MAX_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines. A character split over two chunks comes whole. */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #held = 0;

  /** `onLine` takes each line without its newline; a line has at most `maxBytes`. */
  constructor(onLine: (line: string) => void, maxBytes = LINE_MAX_BYTES) {
    this.#onLine = onLine;
    this.#maxBytes = maxBytes;
  }

  /** Takes the next bytes; false when a line went over its bound, and was dropped. */
  push(bytes: Buffer): boolean {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      const last = bytes.subarray(start, end);
      const line = this.#parts.length > 0 ? Buffer.concat([...this.#parts, last]) : last;
      this.#parts = [];
      this.#held = 0;
      start = end + 1;
      if (line.length > 0) this.#onLine(line.toString("utf8"));
    }
    if (start < bytes.length) {
      this.#parts.push(bytes.subarray(start));
      this.#held += bytes.length - start;
    }
    if (this.#held <= this.#maxBytes) return true;
    this.#parts = [];
    this.#held = 0;
    return false;
  }
}
