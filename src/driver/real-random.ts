import { randomBytes } from "node:crypto";
import type { Random } from "./ports.ts";

/** 96 bits: no two ids of this process or any other meet. */
const ID_BYTES = 12;

/** The machine's randomness. Ids are hexadecimal, so they begin with a letter or digit. */
export const realRandom: Random = {
  next: () => Math.random(),
  id: () => randomBytes(ID_BYTES).toString("hex"),
};
