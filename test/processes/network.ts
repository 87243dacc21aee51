import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * A network between an executor and its scheduler that can be cut: then the scheduler sees the connection closed, while
 * the executor's stays open and silent, as do those that it opens after that.
 */
export class Network {
  readonly #server: Server;
  readonly #target: URL;
  readonly #near = new Set<Socket>();
  readonly #far = new Set<Socket>();
  #isCut = false;

  private constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async start(target: string): Promise<Network> {
    const network = new Network(target);
    await new Promise<void>((resolve) => network.#server.listen(0, "127.0.0.1", resolve));
    return network;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `${this.#target.protocol}//127.0.0.1:${port}`;
  }

  cut(): void {
    this.#isCut = true;
    for (const near of this.#near) near.unpipe();
    for (const far of this.#far) far.destroy();
  }

  /** New connections are carried again; the ones that were cut end. */
  heal(): void {
    this.#isCut = false;
    for (const near of this.#near) near.destroy();
  }

  async end(): Promise<void> {
    this.cut();
    this.heal();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near: Socket): void {
    keep(this.#near, near);
    // What arrives while it is cut is read, and lost.
    if (this.#isCut) return void near.resume();
    const far = connect(Number(this.#target.port), this.#target.hostname);
    keep(this.#far, far);
    near.pipe(far);
    far.pipe(near);
    near.once("close", () => far.destroy());
    far.once("close", () => {
      if (!this.#isCut) near.destroy();
    });
  }
}

function keep(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.on("error", () => {});
  socket.once("close", () => sockets.delete(socket));
}
