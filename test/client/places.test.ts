import { expect, it } from "vitest";
import { newHandle } from "../../src/client/handle.ts";
import { Places } from "../../src/client/places.ts";
import { tableName } from "../../src/model/ids.ts";

it("a place lasts as long as there is a handle, so that a long life leaves nothing behind", () => {
  const table = tableName("t");
  const places = new Places();
  const place = places.at(table, 3);
  const birth = { table, partition: 3, key: undefined, handoff: "exclusive", created: 1, granted: 5 } as const;
  place.current = newHandle(birth);
  places.drop(place);
  expect(places.find(table, 3)).toBe(place);
  place.current = undefined;
  place.ending = [newHandle(birth)];
  places.drop(place);
  expect([...places]).toEqual([place]);
  place.ending = [];
  places.drop(place);
  expect(places.find(table, 3)).toBeUndefined();
  expect([...places]).toEqual([]);
});
