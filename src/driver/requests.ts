import type { Answer } from "../core/effects.ts";
import { EvenkeelError } from "../model/errors.ts";

type Accepted = Extract<Answer, { readonly ok: true }>;

interface Pending {
  readonly resolve: (answer: Accepted) => void;
  readonly reject: (error: EvenkeelError) => void;
}

/** Commands that wait for the core's answer, by the number that their event carries. */
export class Requests {
  #last = 0;
  readonly #pending = new Map<number, Pending>();

  /** Sends a command with a number of its own. Rejects with the EvenkeelError of a refusal. */
  open(send: (request: number) => void): Promise<Accepted> {
    this.#last++;
    const request = this.#last;
    return new Promise((resolve, reject) => {
      this.#pending.set(request, { resolve, reject });
      send(request);
    });
  }

  answer(request: number, answer: Answer): void {
    const pending = this.#pending.get(request);
    this.#pending.delete(request);
    if (answer.ok) pending?.resolve(answer);
    else pending?.reject(new EvenkeelError(answer.code, answer.detail, answer.hint));
  }

  /** Refuses all that still wait: nobody will answer them. */
  rejectAll(error: EvenkeelError): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }
}
