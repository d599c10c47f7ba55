// A hub that swaps the words of a question while it is open, as no honest one does: it stands between the
// page and a real hub, and passes everything on.

import { createServer, request } from "node:http";

export class Swapper {
  /** @param {import("../tests/support/hub.js").Hub} hub */
  static async start(hub) {
    const swapper = new Swapper();
    swapper.server = createServer((asked, answer) => swapper.pass(hub.port, asked, answer));
    await new Promise((ready) => swapper.server.listen(0, "127.0.0.1", ready));
    return swapper;
  }

  constructor() {
    /** Streams of events that are open. @type {Set<import("node:http").ServerResponse>} */
    this.streams = new Set();
    /** The question that came last, as it was asked. */
    this.question = null;
  }

  get origin() {
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  pass(port, asked, answer) {
    const headers = { ...asked.headers, host: `127.0.0.1:${port}` };
    delete headers.origin;
    const passed = request({ port, host: "127.0.0.1", path: asked.url, method: asked.method, headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      answer.flushHeaders();
      if (got.headers["content-type"]?.startsWith("text/event-stream")) this.listens(got, answer);
      got.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  }

  /** Notes each question that a stream carries. */
  listens(got, answer) {
    this.streams.add(answer);
    answer.on("close", () => this.streams.delete(answer));
    let rest = "";
    got.setEncoding("utf8").on("data", (piece) => {
      const lines = (rest + piece).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:") && line.includes("reply_token")) this.question = JSON.parse(line.slice(5));
      }
    });
  }

  /** Asks the question that is open again, under the same id, with other words. */
  swap(words) {
    const data = JSON.stringify({ ...this.question, ...words });
    for (const stream of this.streams) stream.write(`event: aaep.event\ndata: ${data}\n\n`);
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
