import { describe, expect, test } from "vitest";
import { createOpenAccess } from "../../src/auth/open-access.ts";
import { isLoopback } from "../../src/model/loopback.ts";

describe("an Origin is let in only from the host that it asks", () => {
  const onLoopback = createOpenAccess({ boundToLoopback: true });
  const elsewhere = createOpenAccess({ boundToLoopback: false });

  test.each([
    [undefined, "127.0.0.1:7420"],
    [undefined, "127.0.0.1"],
    [undefined, "localhost:1"],
    [undefined, "[::1]:7420"],
    [undefined, "[::ffff:127.0.0.1]:7420"],
    ["http://127.0.0.1:7420", "127.0.0.1:7420"],
    ["http://localhost:7420", "localhost:7420"],
    ["http://LOCALHOST:7420", "localhost:7420"],
    ["http://[::1]:7420", "[::1]:7420"],
    ["http://127.0.0.1", "127.0.0.1:80"],
    ["https://localhost", "localhost:443"],
  ])("on loopback: origin %j, host %j comes in", (origin, host) => {
    expect(onLoopback.refuse({ query: "", origin, host })).toBeUndefined();
  });

  test.each([
    ["http://evil.example", "127.0.0.1:7420"],
    ["http://evil.example:7420", "evil.example:7420"],
    ["http://127.0.0.1:7421", "127.0.0.1:7420"],
    ["http://localhost:7420", "127.0.0.1:7420"],
    ["http://127.0.0.1.evil.example:7420", "127.0.0.1.evil.example:7420"],
    ["null", "127.0.0.1:7420"],
    ["", "127.0.0.1:7420"],
    ["file://", ""],
    ["http://127.0.0.1:7420", "127.0.0.1:7420/x"],
    ["http://127.0.0.1:7420", "evil@127.0.0.1:7420"],
  ])("on loopback: origin %j, host %j is refused", (origin, host) => {
    expect(onLoopback.refuse({ query: "", origin, host })?.code).toBe("forbidden");
  });

  test.each([
    "evil.example",
    "evil.example:7420",
    "127.0.0.1.evil.example:7420",
    "localhost.evil.example",
    "0.0.0.0:7420",
    "10.0.0.1:7420",
    "127.0.0.1:7420/x",
    "evil@127.0.0.1:7420",
    "127.0.0.1:7420#evil.example",
    "127.0.0.1:99999",
    "",
  ])(
    "on loopback a Host that is not loopback is refused without an Origin too, for a browser need not send one: %j",
    (host) => {
      expect(onLoopback.refuse({ query: "", host })?.code).toBe("forbidden");
      expect(elsewhere.refuse({ query: "", host: host || "keel.example" })).toBeUndefined();
    },
  );

  test("a request without a Host is not valid, wherever it comes in", () => {
    for (const access of [onLoopback, elsewhere]) {
      expect(access.refuse({ query: "" })?.code).toBe("invalid");
      expect(access.refuse({ query: "", origin: "http://127.0.0.1:7420" })?.code).toBe("invalid");
    }
  });

  test("on another address any host is one's own, but no other", () => {
    expect(elsewhere.refuse({ query: "", origin: "https://keel.example", host: "keel.example" })).toBeUndefined();
    expect(elsewhere.refuse({ query: "", origin: "https://evil.example", host: "keel.example" })?.code).toBe(
      "forbidden",
    );
  });
});

test.each(["token=s3cret", "x=1&access_token=s3cret", "Token=", "ticket=t", "%74oken=s3cret"])(
  "a token in the URL is refused and not repeated: %s",
  (query) => {
    const refusal = createOpenAccess({ boundToLoopback: true }).refuse({ query, host: "127.0.0.1" });
    expect(refusal?.code).toBe("invalid");
    expect(refusal?.message).not.toContain("s3cret");
  },
);

test("other members of the query are none of access's business", () => {
  expect(
    createOpenAccess({ boundToLoopback: true }).refuse({ query: "tokens=1&a=token", host: "localhost" }),
  ).toBeUndefined();
});

test.each([
  ["localhost", true],
  ["127.0.0.1", true],
  ["127.8.9.10", true],
  ["::1", true],
  ["[::1]", true],
  ["::ffff:127.0.0.1", true],
  ["[::ffff:7f00:1]", true],
  ["::ffff:7fff:ffff", true],
  ["::ffff:8000:1", false],
  ["::ffff:7f0:1", false],
  ["0.0.0.0", false],
  ["::", false],
  ["10.0.0.1", false],
  ["127.evil.example", false],
  ["localhost.evil.example", false],
])("%s is loopback: %s", (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
