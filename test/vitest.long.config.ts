import { defineConfig } from "vitest/config";

/** Tests that take minutes: `npm run test:long`. */
export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  test: {
    include: ["test/long/**/*.test.ts"],
    maxWorkers: 2,
    testTimeout: 1_800_000,
  },
});
