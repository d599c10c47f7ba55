// Compiled, never run: what the declarations say is what the files of the element have.

import type * as core from "./src/core.js";
import type { AaepSubscriber as Declared } from "./src/index.js";
import type { AaepSubscriber } from "../../../web/files/aaep-subscriber.js";
import type { Inbox } from "../../../web/files/inbox.js";
import type { safe } from "../../../web/files/safe.js";
import type { Words, plain } from "../../../web/files/words.js";

type Is<Found extends Wanted, Wanted> = Found;

export type Checks = [
  Is<Pick<AaepSubscriber, "base" | "say" | "phrase">, Pick<Declared, "base" | "say" | "phrase">>,
  Is<Parameters<AaepSubscriber["connect"]>, Parameters<Declared["connect"]>>,
  Is<Inbox, core.Inbox>,
  Is<Words, core.Words>,
  Is<typeof Words, typeof core.Words>,
  Is<typeof plain, typeof core.plain>,
  Is<typeof safe, typeof core.safe>,
];
