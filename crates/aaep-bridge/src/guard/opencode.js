// Written by `aaep guard opencode`. Refuses whenever it is not told yes.
import { spawn } from "node:child_process"

const ask = (said) => new Promise((resolve, reject) => {
  const child = spawn(PROGRAM, ["hook", "--host", "opencode"], { stdio: ["pipe", "pipe", "pipe"] })
  let out = "", err = ""
  child.stdout.on("data", (part) => { out += part })
  child.stderr.on("data", (part) => { err += part })
  child.stdin.on("error", () => {})
  child.on("error", reject)
  child.on("close", (code) => {
    let decision = ""
    try { decision = JSON.parse(out).decision } catch {}
    if (code === 0 && (decision === "allow" || decision === "pass")) resolve()
    else reject(new Error(err.trim() || "Nobody could be asked, so it is not done."))
  })
  child.stdin.end(JSON.stringify(said))
})

export const Aaep = async ({ directory }) => ({
  "tool.execute.before": (input, output) => ask({ hook: "tool.execute.before", directory, input, output }),
  "tool.execute.after": (input) => ask({ hook: "tool.execute.after", directory, input }).catch(() => {}),
  "chat.message": ({ sessionID }, { parts }) =>
    ask({ hook: "chat.message", directory, input: { sessionID }, output: { parts } }).catch(() => {}),
  event: async ({ event }) => {
    if (event.type === "session.idle")
      await ask({ hook: "session.idle", directory, input: event.properties }).catch(() => {})
  },
})
