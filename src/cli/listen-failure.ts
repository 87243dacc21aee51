import { type Address, address } from "../config/kinds.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/** What to say, and to do, when the server could not be started. Errors that are not about its address are left as they are. */
export function listenFailure(error: unknown, listen: Address): unknown {
  const where = address.show(listen);
  const failure = (what: string, hint: string): CommandFailure =>
    new CommandFailure(EXIT.failed, `${where} ${what}`, hint);
  switch ((error as NodeJS.ErrnoException).code) {
    case "EADDRINUSE":
      return failure(
        "is in use by another program, perhaps another evenkeel",
        "end that one, or listen elsewhere: --listen HOST:PORT, port 0 for a free one",
      );
    case "EACCES":
      return failure("may not be listened on by this user", "choose a port above 1023: --listen HOST:PORT");
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return failure("is no address of this machine", "choose one that is: --listen HOST:PORT");
    default:
      return error;
  }
}
