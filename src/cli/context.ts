/** What a command has of its surroundings; tests bring their own. */
export interface Context {
  /** Data. */
  out(text: string): void;
  /** Everything else, one line at a time, without a newline. */
  note(line: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
}

export const processContext: Context = {
  out: (text) => void process.stdout.write(text),
  note: (line) => void process.stderr.write(`${line}\n`),
  environment: process.env,
  folder: process.cwd(),
};
