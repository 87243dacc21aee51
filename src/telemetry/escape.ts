/**
 * Characters that a terminal or a page may act upon instead of showing them: C1 controls, line separators and marks that
 * turn the direction of text. JSON escapes only C0 controls.
 */
const UNSAFE = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Escapes them within JSON text: there they stand in strings only, so it reads as the same values. */
export function escapeUnsafe(json: string): string {
  return json.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
