// What is used of Node, so that no packages are needed.

declare module "node:fs" {
  interface Stats {
    uid: number;
    mode: number;
    isSocket(): boolean;
  }
  export function lstatSync(path: string): Stats;
  export function statSync(path: string): Stats;
  export function existsSync(path: string): boolean;
  export function readFileSync(path: string, encoding: "utf8"): string;
}

declare module "node:net" {
  export interface Socket {
    localAddress?: string;
    localPort?: number;
    remoteAddress?: string;
    remotePort?: number;
    once(event: string, listener: (error: Error) => void): Socket;
    destroy(): void;
  }
  export function connect(options: { path: string } | { host: string; port: number }): Socket;
}

declare module "node:http" {
  import type { Socket } from "node:net";
  interface Answer {
    statusCode?: number;
    setEncoding(encoding: "utf8"): void;
    on(event: "data", listener: (text: string) => void): void;
    on(event: "end" | "aborted", listener: () => void): void;
    on(event: "error", listener: (error: Error) => void): void;
  }
  interface Request {
    on(event: "error", listener: (error: Error) => void): void;
    end(body?: string): void;
  }
  export function request(
    options: {
      createConnection: () => Socket;
      method: string;
      path: string;
      headers: Record<string, string>;
      timeout?: number;
    },
    answered: (answer: Answer) => void,
  ): Request;
}

declare const process: {
  argv: string[];
  env: Record<string, string | undefined>;
  platform: string;
  exitCode: number | undefined;
  geteuid?(): number;
};
