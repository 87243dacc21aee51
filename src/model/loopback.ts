const V4 = /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/;

/** True for names and addresses by which only this machine is reached; IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name === "::1") return true;
  return V4.test(name) && name.split(".").every((part) => Number(part.replace("::ffff:", "")) <= 255);
}
