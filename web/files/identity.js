// Whether a hub is who it says: its signed manifest (§5.10), and what this browser remembers of it.
// The library and `aaep listen` follow the same rules.

/** The algorithms that count, and no others: `none` and shared secrets above all do not. */
const ALGORITHMS = {
  ES256: { kty: "EC", crv: "P-256", members: ["crv", "kty", "x", "y"], how: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } },
  EdDSA: { kty: "OKP", crv: "Ed25519", members: ["crv", "kty", "x"], how: { name: "Ed25519" } },
  RS256: { kty: "RSA", crv: undefined, members: ["e", "kty", "n"], how: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } },
};

/** How far the clocks may be apart, and the longest time for which a signature is good, in seconds. */
const SKEW = 300;
const MAX_LIFE = 400 * 86_400;
const MAX_LENGTH = 256 * 1024;
/** The shortest RSA modulus, as characters of base64url. */
const MIN_RSA = 342;

const MEMORY = "aaep-known-agents";

/** A hub that is not to be believed. */
export class NotBelieved extends Error {}

/** @param {string} text */
function bytes(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}

/** @param {ArrayBuffer} data */
function base64url(data) {
  return btoa(String.fromCharCode(...new Uint8Array(data))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @param {string} text */
const parsed = (text) => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes(text)));

/**
 * Verifies a signed manifest at a time in milliseconds; whose key has signed it.
 * @param {string} signed @param {string} agentId @param {number} now
 * @returns {Promise<{agent_id: string, key: string}>}
 */
export async function verify(signed, agentId, now) {
  /** @type {any} */ let header;
  /** @type {any} */ let manifest;
  const [head = "", payload = "", signature = "", ...more] = signed.split(".");
  if (signed.length > MAX_LENGTH || more.length > 0) throw new NotBelieved("malformed");
  try {
    [header, manifest] = [parsed(head), parsed(payload)];
  } catch {
    throw new NotBelieved("malformed");
  }
  const jwk = header.jwk ?? {};
  const algorithm = Object.hasOwn(ALGORITHMS, header.alg)
    ? ALGORITHMS[/** @type {keyof typeof ALGORITHMS} */ (header.alg)] : undefined;
  if (algorithm === undefined || jwk.kty !== algorithm.kty || jwk.crv !== algorithm.crv) throw new NotBelieved("algorithm");
  if (jwk.kty === "RSA" && String(jwk.n).length < MIN_RSA) throw new NotBelieved("algorithm");
  const typ = String(header.typ ?? "jose").toLowerCase();
  const extended = ["crit", "zip", "enc"].some((name) => name in header);
  if (!["aaep-manifest+jws", "jose", "jwt"].includes(typ) || extended) throw new NotBelieved("malformed");
  const bare = Object.fromEntries(algorithm.members.map((name) => [name, String(jwk[name])]));
  const encoder = new TextEncoder();
  const key = base64url(await crypto.subtle.digest("SHA-256", encoder.encode(JSON.stringify(bare))));
  if (header.kid !== undefined && header.kid !== key) throw new NotBelieved("swapped key");
  const imported = await crypto.subtle.importKey("jwk", bare, algorithm.how, false, ["verify"]);
  const holds = await crypto.subtle.verify(algorithm.how, imported, bytes(signature), encoder.encode(`${head}.${payload}`));
  if (!holds) throw new NotBelieved("signature");
  const [begins, ends, seconds] = [manifest.iat, manifest.exp, now / 1000];
  const life = ends - begins;
  if (!Number.isInteger(begins) || !Number.isInteger(ends) || life < 1 || life > MAX_LIFE) throw new NotBelieved("time");
  if (seconds > ends + SKEW || seconds < begins - SKEW) throw new NotBelieved("stale");
  if (manifest.type !== "aaep:producer.manifest") throw new NotBelieved("no manifest");
  if (manifest.agent_id !== agentId) throw new NotBelieved("another agent");
  return { agent_id: agentId, key };
}

/** Where keys are remembered, if this page may keep anything. */
function storage() {
  try {
    return globalThis.localStorage;
  } catch {
    return undefined;
  }
}

/**
 * Who accepted a subscription, by what is remembered; null where nobody can tell.
 * @param {any} accepted @param {string} place @param {number} now
 * @param {Pick<Storage, "getItem" | "setItem">} [memory]
 * @returns {Promise<Identity | null>}
 */
export async function identify(accepted, place, now, memory = storage()) {
  /** @type {Record<string, {agent_id: string, key: string}>} */
  let known = {};
  try {
    known = JSON.parse(memory?.getItem(MEMORY) ?? "{}");
  } catch {
    // What cannot be read is as if nothing was remembered: the page cannot mend it.
  }
  const before = Object.hasOwn(known, place) ? known[place] : undefined;
  if (accepted.signed_manifest === undefined) {
    if (before !== undefined) throw new NotBelieved("no longer signed");
    return null;
  }
  // Over plain HTTP from another machine there is no cryptography in a browser.
  if (globalThis.crypto?.subtle === undefined) return null;
  let found;
  try {
    found = await verify(String(accepted.signed_manifest), String(accepted.producer?.agent_id), now);
  } catch (error) {
    // An older browser does not know Ed25519.
    if (error instanceof DOMException && error.name === "NotSupportedError") return null;
    throw error instanceof NotBelieved ? error : new NotBelieved("key");
  }
  if (before === undefined) {
    memory?.setItem(MEMORY, JSON.stringify({ ...known, [place]: found }));
    return { is: "new", ...found };
  }
  if (before.key !== found.key || before.agent_id !== found.agent_id) throw new NotBelieved("changed");
  return { is: "verified", ...found };
}
