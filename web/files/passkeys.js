// Passkeys: registering and removing them, and signing a yes with one. The person's authenticator
// signs a challenge that the hub makes from the request and from what would run.

import { bytes, written } from "./base64.js";
import { button, h } from "./dom.js";

/** @typedef {import("./connection.js").Connection} Connection */
/** @typedef {import("./asking.js").Asking} Asking */

/** Whether this browser has passkeys for this address: names only, and only where nobody listens in. */
const available = () => globalThis.isSecureContext && "PublicKeyCredential" in globalThis &&
  !/^[\d.]+$|^\[/.test(location.hostname);

/** @param {Response} answer */
async function read(answer) {
  if (answer.status === 204) return {};
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(String(body.text ?? answer.status));
  return body;
}

/** What the hub says to a message about passkeys. @param {Connection} hub @param {string} path @param {Message} message */
const ask = async (hub, path, message) => read(await hub.post(`presence/passkeys${path}`, message));

/** @param {string[]} ids @returns {PublicKeyCredentialDescriptor[]} */
const descriptors = (ids) => ids.map((id) => ({ type: "public-key", id: bytes(id) }));

/**
 * Has a yes signed, and shows the signature to the hub. Without a token, a change of passkeys.
 * @param {Connection} hub @param {string} [token]
 */
async function sign(hub, token = "") {
  const { challenge, domain, allow } = await ask(hub, "/challenge", { reply_token: token });
  const credential = await navigator.credentials.get({ publicKey: { challenge: bytes(challenge), rpId: domain,
    allowCredentials: descriptors(allow), userVerification: "required" } });
  const { response, rawId } = /** @type {PublicKeyCredential} */ (credential);
  const { clientDataJSON, authenticatorData, signature } = /** @type {AuthenticatorAssertionResponse} */ (response);
  await ask(hub, "/assertion", { reply_token: token, assertion: { credentialId: written(rawId),
    clientDataJSON: written(clientDataJSON), authenticatorData: written(authenticatorData), signature: written(signature) } });
}

/** @param {Connection} hub @param {string} name */
async function register(hub, name) {
  const options = await ask(hub, "/options", { subscription_id: hub.subscription });
  const credential = await navigator.credentials.create({ publicKey: { challenge: bytes(options.challenge),
    rp: { id: options.domain, name: "AAEP" }, user: { id: bytes(options.userId), name, displayName: name },
    pubKeyCredParams: options.algorithms.map((/** @type {number} */ alg) => ({ type: "public-key", alg })),
    excludeCredentials: descriptors(options.exclude), attestation: "none",
    authenticatorSelection: { userVerification: "required", residentKey: "preferred" } } });
  const { response } = /** @type {PublicKeyCredential} */ (credential);
  const { clientDataJSON, attestationObject } = /** @type {AuthenticatorAttestationResponse} */ (response);
  await ask(hub, "", { name, registration: { clientDataJSON: written(clientDataJSON), attestationObject: written(attestationObject) } });
}

/**
 * Does something with passkeys; where the hub wants to see one first, signs with one that is there.
 * @param {Connection} hub @param {boolean} has @param {() => Promise<unknown>} act
 */
async function change(hub, has, act) {
  if (has) await sign(hub);
  return act();
}

/** Whether this person has a passkey for this address. @param {Connection} hub */
async function isHere(hub) {
  if (!available()) return false;
  const { passkeys = [] } = await read(await hub.fetch("presence/passkeys", {}));
  return passkeys.some((/** @type {{domain: string}} */ { domain }) => domain === location.hostname);
}

// enforces: I34
/**
 * Has a yes signed, where the person has a passkey; asks for the PIN where that is enough, and they
 * have none or did not use it the first time.
 * @param {Asking} asking @param {string} needs
 */
export async function prove(asking, needs) {
  const request = asking.current;
  const hub = asking.hands.connection();
  if (!request || !hub || !asking.mayAnswer(request)) return;
  asking.busy(true);
  const [here] = await Promise.all([isHere(hub).catch(() => false), asking.words.more()]);
  if (needs === "pin" && (!here || asking.unsigned === request.number)) {
    asking.unsigned = 0;
    asking.busy(false);
    if (asking.current !== request) return;
    const { askPin } = await import("./pin.js");
    return askPin(asking);
  }
  let signed = here;
  if (here) {
    asking.say("page.passkey.sign", {}, true);
    signed = await sign(hub, request.reply_token).then(() => true, () => false);
  }
  asking.busy(false);
  if (asking.current !== request) return;
  if (signed) return void asking.send(request, asking.hands.decide(request, "accept"));
  asking.unsigned = request.number;
  const missing = here ? "page.passkey.not_signed" : "page.passkey.none";
  asking.say(available() ? missing : "page.passkeys.elsewhere", {}, true);
}

/**
 * Fills the part of the settings about passkeys.
 * @param {HTMLElement} panel @param {Words} words @param {() => Connection | null} connected
 * @param {(key: string) => void} say
 */
export async function fillPanel(panel, words, connected, say) {
  await words.more();
  panel.append(h("p", { class: "hint" }, words.text(available() ? "page.passkeys.about" : "page.passkeys.elsewhere")));
  if (!available()) return;
  const list = h("ul", { class: "passkeys" });
  const name = h("input", { id: "passkey-name", type: "text", autocomplete: "off", maxlength: "64" });
  let has = false;
  const show = async () => {
    const hub = connected();
    if (!hub) return;
    const { passkeys = [] } = await read(await hub.fetch("presence/passkeys", {}));
    has = passkeys.some((/** @type {{domain: string}} */ { domain }) => domain === location.hostname);
    list.replaceChildren(...passkeys.map((/** @type {{id: string, name: string}} */ { id, name: called }) => {
      const label = words.text("page.passkey.remove", { name: { theirs: called } });
      const remove = button(label, () => act(() => change(hub, has,
        () => ask(hub, "/remove", { subscription_id: hub.subscription, id })), "page.passkey.removed"));
      return h("li", {}, h("span", { dir: "auto" }, called), " ", remove);
    }));
    list.hidden = passkeys.length === 0;
  };
  /** @param {() => Promise<unknown>} does @param {string} done */
  const act = async (does, done) => {
    try {
      await does();
      await show();
      say(done);
    } catch {
      // The browser has told the person why; nothing has changed.
      say("page.passkey.failed");
    }
    add.focus();
  };
  const add = button(words.text("page.passkey.add"), () => {
    const hub = connected();
    const called = name.value.trim() || words.text("page.passkey.unnamed");
    if (hub) void act(() => change(hub, has, () => register(hub, called)), "page.passkey.added");
  });
  panel.append(list, h("div", { class: "field" }, h("label", { for: "passkey-name" }, words.text("page.passkey.name")), name), add);
  await show().catch(() => {});
}
