// What is said when the hub does not let the page in; loaded when it does not.

/**
 * @param {import("./aaep-subscriber.js").AaepSubscriber} element
 * @param {number} status @param {Message} body What the hub answered.
 */
export async function refused(element, status, body) {
  const text = String(body.reason_message ?? body.text ?? "");
  // A rejection of the handshake is about who asks. Other refusals never came so far: behind a proxy that
  // hides the hub's name, say, another token would change nothing.
  const wantsToken = status === 401 || (status === 403 && body.reason_code !== undefined);
  const { view } = element;
  await view?.words.more();
  const why = wantsToken || text === "" ? "page.refused"
    : view?.words.text("page.refused.because", { why: { theirs: text } });
  view?.unconnected(why ?? "");
  element.emit("aaep-state", { connected: false, refused: status, text, wantsToken });
}
