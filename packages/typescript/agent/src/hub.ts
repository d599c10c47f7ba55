/**
 * How a program reaches the hub of its own user, and nobody else's.
 *
 * Any user of a machine can take a port, or put a socket somewhere, and answer in the hub's place. So
 * before anything is sent, whoever is at the other end is shown to be our own user, or root.
 */

import { existsSync, lstatSync, readFileSync, statSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { connect, type Socket } from "node:net";

import { Misuse, Stranger } from "./errors.js";

const BASE = "/aaep/v1";

/** How long an idle connection is kept. */
const IDLE_MS = 4_000;

/** AAEP_URL; else a socket of this user on which somebody listens; else the usual address. */
export async function localHub(): Promise<string> {
  const { AAEP_URL: url, XDG_RUNTIME_DIR: runtime, HOME: home } = process.env;
  if (url) return url;
  let folder = runtime?.startsWith("/") ? `${runtime}/aaep` : `/tmp/aaep-${process.geteuid?.()}`;
  if (process.platform === "darwin") folder = `${home}/Library/Application Support/AAEP`;
  for (const name of ["aaep-hub", "aaep-demo"]) {
    const path = `${folder}/${name}.sock`;
    try {
      (await connected({ path })).destroy();
      return `unix:${path}`;
    } catch {
      // Nobody listens there.
    }
  }
  return "http://127.0.0.1:8707";
}

/** What a hub answered. */
export interface Answer {
  status: number;
  text: string;
}

/** How a hub is reached. */
export interface Reach {
  url: string;
  /** Certificates to trust besides, in PEM. */
  trustPem?: string;
  /** Trusts whatever listens on loopback, whichever user runs it. */
  trustLoopback?: boolean;
}

/** A way to one hub; connections are kept and used again. */
export class Way {
  private readonly agent: http.Agent;
  private readonly base: string;
  private readonly options: http.RequestOptions;
  private readonly secure: boolean;

  constructor({ url, trustPem, trustLoopback = false }: Reach) {
    const kept = { keepAlive: true, keepAliveMsecs: 1000, scheduling: "lifo" as const };
    if (url.startsWith("unix:")) {
      const path = url.slice("unix:".length);
      if (path === "") throw new Misuse("unix: is followed by the path of a socket");
      this.secure = false;
      this.base = BASE;
      this.options = { host: "localhost" };
      this.agent = new CheckedAgent(kept, async () => {
        checkSocket(path);
        return connected({ path });
      });
      return;
    }
    const address = new URL(url);
    if (address.username || address.password) throw new Misuse("An address holds no name and no password; give a token.");
    const host = address.hostname.replace(/^\[|\]$/g, "");
    this.base = address.pathname === "/" ? BASE : address.pathname.replace(/\/$/, "");
    this.secure = address.protocol === "https:";
    const port = Number(address.port || (this.secure ? 443 : 80));
    this.options = { host, port };
    if (this.secure) {
      this.agent = new https.Agent({ ...kept, ...(trustPem && { ca: trustPem }) });
    } else if (address.protocol === "http:") {
      this.options.setHost = false;
      this.options.headers = { host: address.host };
      this.agent = new CheckedAgent(kept, () => loopback(host, port, trustLoopback));
    } else {
      throw new Misuse(`${url} is no address of a hub`);
    }
  }

  /** Sends one request below the base of the hub. `sent` is called before anything can reach it. */
  send(method: string, path: string, headers: Record<string, string>, body: string | undefined, waitMs: number, sent?: () => void): Promise<Answer> {
    return new Promise((done, failed) => {
      const length: Record<string, string> = body === undefined ? {} : { "content-length": `${Buffer.byteLength(body)}` };
      const all = { ...(this.options.headers as Record<string, string>), ...headers, ...length };
      const wanted = { ...this.options, agent: this.agent, method, path: `${this.base}/${path}`, headers: all };
      const asked = (this.secure ? https : http).request(wanted, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (more: string) => (text += more));
        answer.on("end", () => {
          clearTimeout(timer);
          done({ status: answer.statusCode ?? 0, text });
        });
        answer.on("error", fail);
      });
      const fail = (error: Error) => {
        clearTimeout(timer);
        failed(error);
      };
      const timer = setTimeout(() => asked.destroy(new Error("no answer in time")), waitMs);
      asked.on("error", fail);
      asked.once("socket", () => sent?.());
      asked.end(body);
    });
  }

  /** Gives the connections back. */
  close(): void {
    this.agent.destroy();
  }
}

/** Makes connections of its own, so that whoever is at the other end is known before anything is sent. */
class CheckedAgent extends http.Agent {
  private readonly open: () => Promise<Socket>;

  constructor(options: http.AgentOptions, open: () => Promise<Socket>) {
    super(options);
    this.open = open;
  }

  override createConnection(_: unknown, made?: (error: Error | null, socket: Socket) => void): undefined {
    // Node takes the socket by the callback.
    this.open().then((socket) => {
      socket.setNoDelay(true);
      socket.on("timeout", () => socket.destroy()); // only an idle one has a time
      made?.(null, socket);
    }, (error: Error) => (made as ((error: Error) => void) | undefined)?.(error));
  }

  override keepSocketAlive(socket: Socket): boolean {
    socket.unref();
    socket.setTimeout(IDLE_MS);
    return true;
  }

  override reuseSocket(socket: Socket, request: http.ClientRequest): void {
    socket.setTimeout(0);
    socket.ref();
    super.reuseSocket(socket, request);
  }
}

/** A connection to nobody but our own user. */
async function loopback(host: string, port: number, trusted: boolean): Promise<Socket> {
  const socket = await connected({ host, port });
  try {
    const ip = plain(socket.remoteAddress ?? "");
    if (ip !== "::1" && !ip.startsWith("127.")) {
      throw new Stranger(`${host} is another machine, and the connection is not protected: use https`);
    }
    if (!trusted) checkListener(socket);
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return socket;
}

function connected(to: { path: string } | { host: string; port: number }): Promise<Socket> {
  return new Promise((done, failed) => {
    const socket = connect(to);
    socket.once("connect", () => {
      socket.off("error", failed);
      done(socket);
    });
    socket.once("error", failed);
  });
}

function ours(uid: number, what: string): void {
  if (uid !== process.geteuid?.() && uid !== 0) {
    throw new Stranger(`${what} belongs to another user (${uid}); nothing was sent to it`);
  }
}

/** Nobody but our own user, or root, can have put the socket there. */
function checkSocket(path: string): void {
  const found = lstatSync(path);
  if (!found.isSocket()) throw new Stranger(`${path} is not a socket`);
  ours(found.uid, path);
  const folder = statSync(path.slice(0, path.lastIndexOf("/")) || "/");
  ours(folder.uid, `the directory of ${path}`);
  if (folder.mode & 0o022 && !(folder.mode & 0o1000)) {
    throw new Stranger(`others may write to the directory of ${path}`);
  }
}

/** An IPv4 address that came through an IPv6 socket is still the same. */
const plain = (ip: string) => ip.replace(/^::ffff:(?=\d+\.)/, "");

/** Linux says whose each socket is: every one that may have taken the connection has to be ours. */
function checkListener(socket: Socket): void {
  const local = `${plain(socket.localAddress ?? "")} ${socket.localPort}`;
  const peer = `${plain(socket.remoteAddress ?? "")} ${socket.remotePort}`;
  if (!existsSync("/proc/net/tcp")) {
    throw new Stranger(`whose program answers at ${peer} cannot be shown; use the socket, or https`);
  }
  const tables = ["/proc/net/tcp", "/proc/net/tcp6"].filter((table) => existsSync(table));
  const lines = tables.flatMap((table) => readFileSync(table, "utf8").split("\n").slice(1));
  let listens = false;
  for (const line of lines) {
    const words = line.trim().split(/\s+/);
    if (words.length < 10) continue;
    const [own, other, state] = [read(words[1] ?? ""), read(words[2] ?? ""), words[3]];
    if (state === "0A" && [peer, `0.0.0.0 ${socket.remotePort}`, `:: ${socket.remotePort}`].includes(own)) {
      listens = true;
      ours(Number(words[7]), `the program at ${peer}`);
    } else if (words[9] !== "0" && own === peer && other === local) {
      ours(Number(words[7]), `the program at ${peer}`); // accepted
    }
  }
  if (!listens) throw new Stranger(`nobody of this machine listens at ${peer}; use the socket, or https`);
}

/** `0100007F:2203`: words of four bytes in the machine's order, and the port. */
function read(text: string): string {
  const [ip = "", port = ""] = text.split(":");
  const little = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
  const bytes = (ip.match(/.{8}/g) ?? []).flatMap((word) => {
    const four = (word.match(/../g) ?? []).map((digits) => parseInt(digits, 16));
    return little ? four.reverse() : four;
  });
  return `${written(bytes)} ${parseInt(port, 16)}`;
}

/** The addresses that matter here: any IPv4, also mapped, and of IPv6 loopback and all. */
function written(bytes: number[]): string {
  if (bytes.length === 4) return bytes.join(".");
  const first = bytes.slice(0, 10).every((byte) => byte === 0);
  if (first && bytes[10] === 255 && bytes[11] === 255) return bytes.slice(12).join(".");
  const rest = bytes.slice(0, 15).every((byte) => byte === 0);
  const last = bytes[15] ?? 255;
  if (rest && last <= 1) return last === 1 ? "::1" : "::";
  return bytes.join(":");
}
