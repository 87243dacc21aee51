const V4 = /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/;
/** The same addresses within IPv6, as a URL parser writes them. */
const V4_MAPPED = /^::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}$/;

/** True for names and addresses by which only this machine is reached; IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name === "::1" || V4_MAPPED.test(name)) return true;
  return V4.test(name) && name.split(".").every((part) => Number(part.replace("::ffff:", "")) <= 255);
}
