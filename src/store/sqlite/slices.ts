/** Items of a list that are written at a time: some 100 KB of text, less than a millisecond. */
const SLICE = 500;

/**
 * The JSON text of plain data, long lists a slice at a time with a turn of the loop between: a ledger of a million
 * partitions is 16 MB of text, which at once would stop everything for 80 ms. The data must not change meanwhile.
 */
export async function writeInSlices(data: unknown): Promise<string> {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return JSON.stringify(data);
  const members: string[] = [];
  for (const [name, value] of Object.entries(data)) {
    const text = Array.isArray(value) ? await writeList(value) : JSON.stringify(value);
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(",")}}`;
}

async function writeList(items: readonly unknown[]): Promise<string> {
  const slices: string[] = [];
  for (let from = 0; from < items.length; from += SLICE) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve));
    slices.push(JSON.stringify(items.slice(from, from + SLICE)).slice(1, -1));
  }
  return `[${slices.join(",")}]`;
}
