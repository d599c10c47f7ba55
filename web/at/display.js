// A braille display of 40 cells that is a socket: BRLTTY with its virtual driver. Orca writes to it.

import { connect } from "node:net";
import { createInterface } from "node:readline";

import { freePort } from "../tests/support/hub.js";

const CELLS = 40;

/** BrlAPI's port is this one and the number behind the colon. */
const API_PORT = 4101;

export class Display {
  /** Starts BRLTTY on a desktop, and plugs the display in. */
  static async start(desktop) {
    const [port, api] = [await freePort(), await freePort()];
    desktop.env.BRLAPI_HOST = `127.0.0.1:${api - API_PORT}`;
    await desktop.run("brltty", "brltty", ["-n", "-e", "-f", "/dev/null", "-b", "vr", "-d", `server:127.0.0.1:${port}`,
      "-x", "no", "-s", "no", "-A", `auth=none,host=${desktop.env.BRLAPI_HOST}`, "-P", `${desktop.folder}/brltty.pid`]);
    const display = new Display();
    let plugged = false;
    const plug = () => {
      const socket = connect(port, "127.0.0.1");
      socket.once("connect", () => {
        plugged = true;
        socket.write(`cells ${CELLS}\n`);
        display.socket = socket;
        createInterface({ input: socket }).on("line", (line) => display.takes(line)).on("error", () => {});
      });
      socket.on("error", () => plugged || setTimeout(plug, 200));
    };
    plug();
    await desktop.until(() => display.shows !== "", 60_000, "BRLTTY");
    return display;
  }

  constructor() {
    /** What is felt now. */
    this.shows = "";
    this.socket = null;
  }

  /** A line of BRLTTY's: what it shows, as text. */
  takes(line) {
    const [, text] = /^visual\s+"(.*)"/i.exec(line) ?? [];
    if (text !== undefined) this.shows = text.trimEnd();
  }

  /** Presses a key of the display, by BRLTTY's name for what it does. */
  press(command) {
    this.socket.write(`${command}\n`);
  }

  unplug() {
    this.socket?.destroy();
  }
}
