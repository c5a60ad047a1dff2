/** JSON with comments and trailing commas, as people write config files. */

/**
 * Takes the text and gives its value; a syntax error throws, with line and column where Node tells
 * them. What JSON does not know becomes blanks, so that positions stay what they are in the file.
 */
export function parseJsonc(text: string): unknown {
  return JSON.parse(withoutTrailingCommas(withoutComments(text.replace(/^\uFEFF/, " "))));
}

/** A string (also one that lacks its end), or a comment. */
const STRING_OR_COMMENT = /"(?:[^"\\\n]|\\.)*"?|\/\/[^\n]*|\/\*[^]*?\*\//g;

/** A string, or a comma between a value and the end of its object or array. */
const STRING_OR_COMMA = /"(?:[^"\\\n]|\\.)*"?|(?<=["\w}\]]\s*),(?=\s*[}\]])/g;

function withoutComments(text: string): string {
  return text.replace(STRING_OR_COMMENT, (found) =>
    found.startsWith('"') ? found : found.replace(/[^\n]/g, " "));
}

function withoutTrailingCommas(text: string): string {
  return text.replace(STRING_OR_COMMA, (found) => (found === "," ? " " : found));
}
