/** The newest output of a command while its call waits. */

/** The most output that is held and shown, in bytes. */
export const LIVE_TAIL_BYTES = 32 * 1024;

/** Takes chunks in order of arrival and keeps the last of them. */
export class LiveTail {
  #chunks: string[] = [];
  #bytes = 0;

  push(chunk: string): void {
    this.#chunks.push(chunk);
    this.#bytes += Buffer.byteLength(chunk);
    while (this.#chunks.length > 1 && this.#bytes - sizeOf(this.#chunks[0]) >= LIVE_TAIL_BYTES) {
      this.#bytes -= sizeOf(this.#chunks.shift());
    }
  }

  /** The text, at most LIVE_TAIL_BYTES of UTF-8, cut at a character. */
  get text(): string {
    const bytes = Buffer.from(this.#chunks.join(""));
    let from = Math.max(0, bytes.length - LIVE_TAIL_BYTES);
    while (from > 0 && from < bytes.length && isInsideCharacter(bytes[from])) from += 1;
    return bytes.toString("utf8", from);
  }
}

function sizeOf(chunk: string | undefined): number {
  return Buffer.byteLength(chunk ?? "");
}

function isInsideCharacter(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
