// Signed manifests in the browser: the same rules as in the library.

import assert from "node:assert/strict";
import { generateKeyPairSync, createHmac, sign } from "node:crypto";
import { test } from "node:test";

import { identify, NotBelieved, verify } from "../../files/identity.js";

const NOW = 1_800_000_000;
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

const KINDS = {
  ES256: ["ec", { namedCurve: "P-256" }, "sha256"],
  EdDSA: ["ed25519", {}, null],
  RS256: ["rsa", { modulusLength: 2048 }, "sha256"],
};

function signer(alg) {
  const [kind, options, hash] = KINDS[alg];
  const { publicKey, privateKey } = generateKeyPairSync(kind, options);
  const jwk = publicKey.export({ format: "jwk" });
  return (claims = {}, header = {}) => {
    const manifest = { type: "aaep:producer.manifest", agent_id: "bank", iat: NOW, exp: NOW + 3600, ...claims };
    const text = `${encoded({ alg, jwk, ...header })}.${encoded(manifest)}`;
    const signature = sign(hash, Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  };
}

const at = (signed, seconds = NOW + 1) => verify(signed, "bank", seconds * 1000);

// covers: S7
test("what was signed with one of three algorithms is verified", async () => {
  for (const alg of Object.keys(KINDS)) {
    const found = await at(signer(alg)());
    assert.equal(found.agent_id, "bank");
    assert.match(found.key, /^[\w-]{43}$/);
  }
});

// covers: S7
test("no other algorithm, key, time or agent counts", async () => {
  const own = signer("ES256");
  const other = JSON.parse(Buffer.from(signer("ES256")().split(".")[0], "base64url")).jwk;
  const jwk = JSON.parse(Buffer.from(own().split(".")[0], "base64url")).jwk;
  const [, payload, signature] = own().split(".");
  const shared = `${encoded({ alg: "HS256", jwk })}.${payload}`;
  const hmac = createHmac("sha256", JSON.stringify(jwk)).update(shared).digest("base64url");
  const cases = {
    none: `${encoded({ alg: "none", jwk })}.${payload}.`,
    "the public key as a secret": `${shared}.${hmac}`,
    "a secret as the key": `${encoded({ alg: "HS256", jwk: { kty: "oct", k: "AA" } })}.${payload}.${hmac}`,
    "an inherited name": `${encoded({ alg: "constructor", jwk })}.${payload}.${signature}`,
    "another key": `${encoded({ alg: "ES256", jwk: other })}.${payload}.${signature}`,
    "another key's id": own({}, { kid: "AAAA" }),
    "another agent": own({ agent_id: "shop" }),
    "no time": own({ exp: undefined }),
    "too long": own({ exp: NOW + 401 * 86_400 }),
    "another purpose": own({}, { typ: "at+jwt" }),
    "no manifest": own({ type: "x" }),
    "no JWS": "a.b",
  };
  for (const [name, signed] of Object.entries(cases)) {
    await assert.rejects(at(signed), NotBelieved, name);
  }
  await assert.rejects(at(own(), NOW + 3600 + 301), NotBelieved, "stale");
  await assert.rejects(at(own(), NOW - 301), NotBelieved, "early");
  await at(own(), NOW + 3600 + 300);
});

// covers: S7
test("the first key is remembered, and another one or none is not believed", async () => {
  const kept = new Map();
  const memory = { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => void kept.set(name, text) };
  const [own, other] = [signer("ES256"), signer("EdDSA")];
  const met = (signed, agent_id = "bank") =>
    identify({ producer: { agent_id }, signed_manifest: signed }, "hub:1", NOW * 1000, memory);
  assert.equal(await met(undefined), null);
  assert.equal((await met(own())).is, "new");
  assert.equal((await met(own())).is, "verified");
  await assert.rejects(met(other()), NotBelieved);
  await assert.rejects(met(own({ agent_id: "shop" }), "shop"), NotBelieved);
  await assert.rejects(met(undefined), NotBelieved);
  kept.clear();
  assert.equal((await met(other())).is, "new");
});
