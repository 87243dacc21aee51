import { isIPv4 } from "node:net";

/** True for names and addresses by which only this machine is reached; IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name === "::1") return true;
  const v4 = name.startsWith("::ffff:") ? name.slice("::ffff:".length) : name;
  return isIPv4(v4) && v4.startsWith("127.");
}
