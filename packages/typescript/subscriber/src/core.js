export { Inbox } from "@element/inbox.js";
export { safe } from "@element/safe.js";
export { Words, plain } from "@element/words.js";
