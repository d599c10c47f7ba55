/**
 * How a program reaches the hub of its own user, and nobody else's.
 *
 * Any user of a machine can take a port, or put a socket somewhere, and answer in the hub's place. So
 * before anything is sent, whoever is at the other end is shown to be our own user, or root.
 */

import { existsSync, lstatSync, readFileSync, statSync } from "node:fs";
import { request } from "node:http";
import { connect, type Socket } from "node:net";

const BASE = "/aaep/v1";

/** Another user's program is at the other end, or nobody can tell whose. Nothing was sent. */
export class Stranger extends Error {}

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

/** Sends one request below the base of a hub. */
export async function send(
  url: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | undefined,
  trustLoopback: boolean,
): Promise<Answer> {
  if (url.startsWith("https:")) {
    const answer = await fetch(`${based(url)}/${path}`, { method, headers, body });
    return { status: answer.status, text: await answer.text() };
  }
  const [socket, base, host] = await reached(url, trustLoopback);
  return new Promise((done, failed) => {
    const sent = { createConnection: () => socket, method, path: `${base}/${path}` };
    // One request for each connection.
    const length: Record<string, string> =
      body === undefined ? {} : { "content-length": `${new TextEncoder().encode(body).length}` };
    const all = { ...headers, ...length, host, connection: "close" };
    const asked = request({ ...sent, headers: all, timeout: 75_000 }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (more) => (text += more));
      answer.on("end", () => done({ status: answer.statusCode ?? 0, text }));
      answer.on("aborted", () => failed(new Error("half an answer")));
      answer.on("error", failed);
    });
    asked.on("error", failed);
    asked.end(body);
  });
}

const based = (url: string) => url.replace(/\/$/, "") + (url.includes("/aaep/") ? "" : BASE);

/** A connection to nobody but our own user, the base path, and the host to name. */
async function reached(url: string, trustLoopback: boolean): Promise<[Socket, string, string]> {
  if (url.startsWith("unix:")) {
    const path = url.slice("unix:".length);
    checkSocket(path);
    return [await connected({ path }), BASE, "localhost"];
  }
  const address = new URL(based(url));
  if (address.protocol !== "http:") throw new Error(`${url} is no address of a hub`);
  const host = address.hostname.replace(/^\[|\]$/g, "");
  const socket = await connected({ host, port: Number(address.port || 80) });
  try {
    const ip = plain(socket.remoteAddress ?? "");
    if (ip !== "::1" && !ip.startsWith("127.")) {
      throw new Stranger(`${host} is another machine, and the connection is not protected: use https`);
    }
    if (!trustLoopback) checkListener(socket);
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return [socket, address.pathname.replace(/\/$/, ""), address.host];
}

function connected(to: { path: string } | { host: string; port: number }): Promise<Socket> {
  return new Promise((done, failed) => {
    const socket = connect(to);
    socket.once("connect", () => done(socket));
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
    const [own, other, state] = [read(words[1]), read(words[2]), words[3]];
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
  const [ip, port] = text.split(":");
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
  if (rest && bytes[15] <= 1) return bytes[15] === 1 ? "::1" : "::";
  return bytes.join(":");
}
