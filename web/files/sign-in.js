// Signing in with an identity provider: the authorisation code flow with PKCE (RFC 7636). The page makes
// the secret and keeps it, and the hub speaks with the provider. Loaded where somebody is not let in yet.

import { written } from "./base64.js";
import { button, h } from "./dom.js";

/** @typedef {import("./aaep-subscriber.js").AaepSubscriber} Element */
/** @typedef {{access_token: string, expires_in?: number, refresh_token?: string}} Tokens */

/** Under which name what is needed on the way back is kept; it ends with the tab. */
const KEPT = "aaep-sign-in";

/** A token is renewed this long before it ends, or when a third of its life is left. */
const MARGIN_MS = 60_000;

/** How long a token counts whose provider does not say it, in seconds. */
const USUAL_LIFE = 300;

/** Before something that failed is tried again. */
const AGAIN_MS = 5000;

/** What a sign-in goes on with. @type {{provider: string, refresh: string, unheard: boolean, timer: number} | null} */
let session = null;

/** @param {number} count */
const random = (count) => written(crypto.getRandomValues(new Uint8Array(count)));

/** @param {Element} element @param {string} path @param {Record<string, unknown>} message */
const post = (element, path, message) => fetch(`${element.base}/sign-in/${path}`, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(message), credentials: "omit",
});

/**
 * Offers a button for each provider that the hub names.
 * @param {Element} element @param {HTMLElement} place @param {(key: string) => void} problem
 */
export async function offer(element, place, problem) {
  const answer = await fetch(`${element.base}/sign-in`, { credentials: "omit" }).catch(() => null);
  const { providers = [] } = answer?.ok ? await answer.json() : {};
  const words = element.view?.words;
  if (!words || providers.length === 0) return;
  await words.more();
  const label = (/** @type {string} */ name) => words.text("page.sign_in.with", { name: { ours: name } });
  place.replaceChildren(...providers.map((/** @type {{name: string, issuer: string}} */ { name, issuer }) =>
    h("p", {}, button(label(name), () => void begin(element, name, issuer, problem)))));
}

/** Leaves for the provider. @param {Element} element @param {string} provider @param {string} issuer @param {(key: string) => void} problem */
async function begin(element, provider, issuer, problem) {
  const [state, verifier] = [random(16), random(32)];
  try {
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const answer = await post(element, "begin", { provider, state, code_challenge: written(hash) });
    const url = answer.ok ? String((await answer.json()).url) : "";
    if (!url.startsWith("https://")) throw new Error(url);
    sessionStorage.setItem(KEPT, JSON.stringify({ provider, issuer, state, verifier }));
    location.assign(url);
  } catch {
    problem("page.sign_in.unreachable");
  }
}

/**
 * Whoever comes back from a provider with a code gets a token for it, if it is this tab that they left
 * from; else a problem.
 * @param {Element} element
 * @returns {Promise<{token: string, problem: string}>}
 */
export async function finish(element) {
  const query = new URLSearchParams(location.search);
  history.replaceState(null, "", location.pathname);
  await element.view?.words.more();
  const not = (/** @type {string} */ key) => ({ token: "", problem: `page.sign_in.${key}` });
  /** @type {{provider: string, issuer: string, state: string, verifier: string} | null} */
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
    sessionStorage.removeItem(KEPT);
  } catch {
    // Then nobody left from here.
  }
  const [code, issuer] = [query.get("code"), query.get("iss")];
  // RFC 9207: another provider than the one that was asked may have sent this.
  if (!kept || query.get("state") !== kept.state || (issuer ?? kept.issuer) !== kept.issuer || code === null) {
    return not("refused");
  }
  const { provider, verifier } = kept;
  const answer = await post(element, "token", { provider, code, code_verifier: verifier }).catch(() => null);
  if (!answer?.ok) return not(answer?.status === 401 ? "refused" : "unreachable");
  const token = take(element, provider, await answer.json());
  return { token, problem: "page.sign_in.stranger" };
}

/** Keeps what renews a token, and does so in time. @param {Element} element @param {string} provider @param {Tokens} tokens */
function take(element, provider, tokens) {
  const refresh = tokens.refresh_token ?? session?.refresh ?? "";
  const life = (tokens.expires_in ?? USUAL_LIFE) * 1000;
  session = { provider, refresh, unheard: true, timer: 0 };
  plan(element, life - Math.min(MARGIN_MS, life / 3));
  return tokens.access_token;
}

/** @param {Element} element @param {number} wait */
function plan(element, wait) {
  if (!session) return;
  clearTimeout(session.timer);
  session.timer = setTimeout(() => void renew(element), wait);
}

/** A newer token for the connection that there is; true if there is one. @param {Element} element */
async function renew(element) {
  if (!session) return false;
  const { provider, refresh } = session;
  const answer = refresh === "" ? null : await post(element, "token", { provider, refresh_token: refresh }).catch(() => undefined);
  if (answer?.ok) {
    const token = take(element, provider, await answer.json());
    const { connection } = element;
    if (connection) connection.token = token;
    // Shown now, so that the stream that began with the old one goes on.
    await connection?.fetch("status", {}).catch(() => {});
    return true;
  }
  if (answer === undefined || (answer && answer.status !== 401)) {
    plan(element, AGAIN_MS);
    return false;
  }
  session = null;
  await element.view?.words.more();
  element.view?.say("page.sign_in.ends", {}, true);
  element.dispatchEvent(new CustomEvent("aaep-sign-in-ends"));
  return false;
}

/** The hub heard the token. */
export function heard() {
  if (session) session.unheard = false;
}

/**
 * A connection was refused: its token may have ended while the machine slept. True if there is another.
 * @param {Element} element
 */
export async function again(element) {
  if (!session || session.unheard || !(await renew(element))) return false;
  void element.connect({ token: element.connection?.token ?? "" });
  return true;
}
