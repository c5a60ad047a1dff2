/**
 * A terminal's screen, as `tmux capture-pane -e` gives it, as an SVG.
 */

/** How a cell looks. */
interface Style {
  fg: string | undefined;
  bg: string | undefined;
  bold: boolean;
  italic: boolean;
  underline: boolean;
  dim: boolean;
  inverse: boolean;
}

/** Neighbouring cells that look alike. */
interface Run {
  column: number;
  text: string;
  style: Style;
}

const PLAIN: Style = {
  fg: undefined, bg: undefined, bold: false, italic: false, underline: false, dim: false,
  inverse: false,
};
const FOREGROUND = "#d4d4d4";
const BACKGROUND = "#16161e";
/** Sizes in pixels: a cell, and the margin around the screen. */
const CELL_WIDTH = 8.4;
const CELL_HEIGHT = 18;
const MARGIN = 12;
const FONT_SIZE = 14;

const BASIC = [
  "#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5",
  "#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
];
const CUBE = [0, 95, 135, 175, 215, 255];

/** The colour with this number of the 256. */
function indexed(at: number): string {
  const basic = BASIC[at];
  if (basic !== undefined) return basic;
  const levels = at < 232
    ? [Math.floor((at - 16) / 36), Math.floor((at - 16) / 6) % 6, (at - 16) % 6].map((n) => CUBE[n])
    : Array<number>(3).fill(8 + 10 * (at - 232));
  return hex(levels as number[]);
}

function hex(levels: number[]): string {
  return `#${levels.map((level) => level.toString(16).padStart(2, "0")).join("")}`;
}

/** The style after an SGR sequence with these parameters. */
function styled(before: Style, parameters: number[]): Style {
  const style = { ...before };
  for (let at = 0; at < parameters.length; at++) {
    const code = parameters[at] ?? 0;
    if (code === 38 || code === 48) {
      const [colour, used] = extended(parameters.slice(at + 1));
      style[code === 38 ? "fg" : "bg"] = colour;
      at += used;
    } else {
      Object.assign(style, simple(code));
    }
  }
  return style;
}

/** The colour of `5;N` and `2;R;G;B`, and how many parameters it takes. */
function extended([kind, ...rest]: number[]): [string | undefined, number] {
  return kind === 5 ? [indexed(rest[0] ?? 0), 2] : [hex(rest.slice(0, 3)), 4];
}

/** What a parameter that stands alone changes. */
function simple(code: number): Partial<Style> {
  if (code === 0) return PLAIN;
  if (code >= 30 && code <= 37) return { fg: BASIC[code - 30] };
  if (code >= 90 && code <= 97) return { fg: BASIC[code - 82] };
  if (code >= 40 && code <= 47) return { bg: BASIC[code - 40] };
  if (code >= 100 && code <= 107) return { bg: BASIC[code - 92] };
  const others: Record<number, Partial<Style>> = {
    1: { bold: true }, 2: { dim: true }, 3: { italic: true }, 4: { underline: true },
    7: { inverse: true }, 22: { bold: false, dim: false }, 23: { italic: false },
    24: { underline: false }, 27: { inverse: false }, 39: { fg: undefined }, 49: { bg: undefined },
  };
  return others[code] ?? {};
}

/** The runs of one line, which begins with the style that the line before has left. */
function runsOf(line: string, before: Style): { runs: Run[]; style: Style } {
  const runs: Run[] = [];
  let style = before;
  let column = 0;
  for (const part of line.split(/(\x1b\[[\d;:]*m|\x1b\]8;[^\x1b]*\x1b\\)/)) {
    const sequence = /^\x1b\[([\d;:]*)m$/.exec(part);
    if (sequence) {
      style = styled(style, (sequence[1] ?? "").split(/[;:]/).map(Number));
    } else if (part !== "" && !part.startsWith("\x1b")) {
      runs.push({ column, text: part, style });
      column += [...part].length;
    }
  }
  return { runs, style };
}

const escaped = (text: string) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function drawn({ column, text, style }: Run, row: number): string {
  const [fg, bg] = style.inverse
    ? [style.bg ?? BACKGROUND, style.fg ?? FOREGROUND]
    : [style.fg ?? FOREGROUND, style.bg];
  const cells = [...text].length;
  const x = (MARGIN + column * CELL_WIDTH).toFixed(1);
  const y = MARGIN + row * CELL_HEIGHT;
  const width = (cells * CELL_WIDTH).toFixed(1);
  const behind = bg === undefined
    ? ""
    : `<rect x="${x}" y="${y}" width="${width}" height="${CELL_HEIGHT}" fill="${bg}"/>`;
  if (text.trim() === "") return behind;
  const looks = [
    `fill="${fg}"`, style.bold && 'font-weight="bold"', style.italic && 'font-style="italic"',
    style.underline && 'text-decoration="underline"', style.dim && 'opacity="0.6"',
  ].filter(Boolean).join(" ");
  // Viewers fold spaces, and fonts differ in width: both would move what stands behind.
  const shown = text.trim();
  const start = column + text.length - text.trimStart().length;
  const from = (MARGIN + start * CELL_WIDTH).toFixed(1);
  const length = ([...shown].length * CELL_WIDTH).toFixed(1);
  const place = `x="${from}" y="${y + FONT_SIZE}" textLength="${length}"`;
  return `${behind}<text ${place} ${looks}>${escaped(shown).replaceAll(" ", "\u00a0")}</text>`;
}

/** The lines of a screen as an SVG of so many columns; what it shows is told by `title`. */
export function svgOf(lines: string[], columns: number, title: string): string {
  const width = Math.ceil(2 * MARGIN + columns * CELL_WIDTH);
  const height = 2 * MARGIN + lines.length * CELL_HEIGHT;
  let style = PLAIN;
  const rows = lines.map((line, row) => {
    const drawing = runsOf(line, style);
    style = drawing.style;
    return drawing.runs.map((run) => drawn(run, row)).filter((one) => one !== "").join("\n");
  });
  const font = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" `
      + `viewBox="0 0 ${width} ${height}" font-family="${font}" font-size="${FONT_SIZE}" `
      + `role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="${BACKGROUND}"/>`,
    ...rows.filter((row) => row !== ""),
    "</svg>",
    "",
  ].join("\n");
}
