/**
 * Text of others, shown on a terminal or a page that may act upon some characters instead of showing them: controls, line
 * separators, and marks that turn the direction of text or that nobody sees.
 */

const UNSAFE = "\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff";

/** JSON escapes the C0 controls by itself, and has some of them between its values. */
const IN_JSON = new RegExp(`[${UNSAFE}]`, "g");
const IN_TEXT = new RegExp(`[\\u0000-\\u001f${UNSAFE}]`, "g");

/** Escapes them within JSON text, or YAML whose texts are all in double quotes: it reads as the same values. */
export function escapeJson(json: string): string {
  return json.replace(IN_JSON, escaped);
}

/** Writes them out within plain text, line breaks and tabs too. */
export function escapeText(text: string): string {
  return text.replace(IN_TEXT, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
