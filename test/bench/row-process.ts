import { serve } from "./peer.ts";
import type { Figure, RowOptions } from "./row.ts";
import { ROWS } from "./rows.ts";

/** Measures one row in a process of its own, so that no row meets the heap and the compiled code of another. */

const commands = {
  measure: ({ name, options }: { readonly name: string; readonly options: RowOptions }): Promise<readonly Figure[]> => {
    const row = ROWS.find((each) => each.name === name);
    if (row === undefined) throw new Error(`there is no row ${name}`);
    return row.measure(options);
  },
};

export type RowCommands = typeof commands;

serve(commands);
