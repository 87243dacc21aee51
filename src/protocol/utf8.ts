/** Lengths in UTF-8 without encoding. Works in browsers too, so nothing of Node's Buffer is used here. */

/** Bytes of one code point in UTF-8. A lone surrogate is sent as U+FFFD, which takes three. */
export function utf8Bytes(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}

/** Bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    const codePoint = text.codePointAt(at) ?? unit;
    if (codePoint > 0xffff) {
      bytes += 2;
      at++;
    } else bytes += utf8Bytes(codePoint) - 1;
  }
  return bytes;
}
