import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { decodeClientFrame, decodeServerFrame, encodeFrame } from "../../src/protocol/codec.ts";
import { clientFrame, serverFrame } from "../../src/protocol/frames.ts";

/**
 * One frame for each file, written by hand as any client or server may write it: `client-…` goes up, `server-…` comes down.
 * A change of one of these files is a change of the wire.
 */
const DIRECTORY = new URL("golden/", import.meta.url);

const goldens = readdirSync(DIRECTORY)
  .sort()
  .map((file) => {
    const [text = "", ...rest] = readFileSync(new URL(file, DIRECTORY), "utf8").split("\n");
    return { file, text, rest, parsed: JSON.parse(text) as Readonly<Record<string, unknown>> };
  });

const fromClient = goldens.filter(({ file }) => file.startsWith("client-"));
const fromServer = goldens.filter(({ file }) => file.startsWith("server-"));

describe("golden frames", () => {
  it.each(goldens)("$file is one line, named after its direction and type", ({ file, rest, parsed }) => {
    expect(rest).toEqual([""]);
    expect(file).toMatch(new RegExp(`^(client|server)-${parsed["type"]}[-.].*golden\\.json$`));
  });

  it.each(fromClient)("$file decodes and encodes to the same bytes", ({ text }) => {
    const decoded = decodeClientFrame(text);
    expect(decoded.ok ? encodeFrame(decoded.frame) : decoded.close.reason).toBe(text);
  });

  it.each(fromServer)("$file decodes and encodes to the same bytes", ({ text }) => {
    const decoded = decodeServerFrame(text);
    expect(decoded.ok ? decoded.frame && encodeFrame(decoded.frame) : decoded.close.reason).toBe(text);
  });

  const schemas = [...clientFrame.options, ...serverFrame.options].flatMap(shapes).map((shape) => {
    const [type, role] = [literalOf(shape["type"]), literalOf(shape["role"])];
    const frames = goldens.filter(({ parsed }) => parsed["type"] === type && parsed["role"] === role);
    return { name: `${type} ${role ?? ""}`, members: Object.keys(shape), frames };
  });

  it.each(schemas)("every member of $name is in a golden frame", ({ members, frames }) => {
    const seen = new Set(frames.flatMap(({ parsed }) => Object.keys(parsed)));
    expect(members.filter((member) => !seen.has(member))).toEqual([]);
  });
});

/** The members of a frame's schema, or of each of its forms. */
function shapes(schema: z.ZodObject | z.ZodDiscriminatedUnion<readonly z.ZodObject[]>): z.ZodRawShape[] {
  return "options" in schema ? schema.options.map(({ shape }) => shape) : [schema.shape];
}

function literalOf(member: unknown): unknown {
  return member instanceof z.ZodLiteral ? member.value : undefined;
}
