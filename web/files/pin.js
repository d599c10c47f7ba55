// The person's PIN, where a yes needs it; loaded when one does.

import { button, h } from "./dom.js";

/**
 * Asks for the PIN; the yes goes out once it was right.
 * @param {import("./asking.js").Asking} asking
 */
export function askPin(asking) {
  const request = asking.current;
  if (!request) return;
  const { words } = asking;
  const message = h("p", { id: "aaep-pin-message", class: "careful", hidden: "" });
  // "off" is no word to password managers: they would ask whether to keep it, ahead of what is said here.
  const field = /** @type {HTMLInputElement} */ (h("input", { id: "aaep-pin", type: "password",
    autocomplete: "one-time-code", spellcheck: "false" }));
  const back = () => (asking.current ? asking.open(asking.current) : asking.close());
  const typed = async () => {
    const now = asking.current;
    if (!now || !asking.mayAnswer(now)) return;
    const pin = field.value;
    field.value = "";
    if (pin === "") return asking.again(field, message, "page.pin.wrong");
    asking.busy(true);
    const state = await asking.hands.unlock(pin);
    asking.busy(false);
    if (asking.current !== now) return;
    if (state === "unlocked") return void asking.send(now, asking.hands.decide(now, "accept"));
    const known = ["wait", "unset"].includes(state) ? state : "wrong";
    asking.again(field, message, `page.pin.${known}`);
  };
  // No form: what one sends, a password manager offers to keep.
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    void typed();
  });
  const entry = h("div", {}, h("label", { for: "aaep-pin" }, words.text("page.pin.label")), field, message,
    h("div", { class: "buttons" }, button(words.text("page.back"), back, { class: "answer no" }),
      button(words.text("page.pin.confirm"), () => void typed(), { class: "answer yes" })));
  asking.show({ lead: "", heading: words.phrase("page.pin"), language: words.language, text: [], waits: null,
    escape: back, answers: [entry, asking.timer] });
  asking.isSecond = true;
}

/**
 * Shows the PIN to the hub, so that a yes from here counts for a while; what became of it, in a word.
 * @param {import("./connection.js").Connection | null | undefined} connection @param {string} pin
 * @returns {Promise<string>}
 */
export async function unlock(connection, pin) {
  if (!connection) return "";
  const { subscription } = connection;
  const timestamp = new Date(connection.now()).toISOString();
  try {
    const answer = await connection.post("replies",
      { type: "presence:unlock", pin, subscription_id: subscription, timestamp });
    const { state, seconds } = await answer.json();
    // A little less than the hub counts: what is sent in the last second may come too late.
    if (state === "unlocked") connection.unlocked = { subscription, until: Date.now() + (seconds - 1) * 1000 };
    return String(state);
  } catch {
    return "";
  }
}
