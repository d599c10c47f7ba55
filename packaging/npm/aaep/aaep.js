#!/usr/bin/env node
// Runs the command that was installed for this platform, as if it had been called itself.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const name = `@aaep/cli-${process.platform}-${process.arch}`;
let command;
try {
  command = createRequire(import.meta.url).resolve(`${name}/aaep${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`aaep: There is no command for this platform: ${name} is not installed. Install without --omit=optional, or build it with: cargo install aaep-cli`);
  process.exit(2);
}
const child = spawn(command, process.argv.slice(2), { stdio: "inherit" });
// The terminal tells both; what comes from elsewhere is passed on.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => signal === "SIGINT" || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`aaep: ${command} cannot be started: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 2);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
