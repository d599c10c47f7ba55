// The hub's own page around the element: how to get in, and something to say to the agent.

import { AaepSubscriber } from "./aaep-subscriber.js";

/** @param {string} selector */
function find(selector) {
  const found = document.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(selector);
  return found;
}

const element = /** @type {AaepSubscriber} */ (find("aaep-subscriber"));
const enter = find("#enter");
const talk = find("#talk");
const token = /** @type {HTMLInputElement} */ (find("#token"));
const words = /** @type {HTMLInputElement} */ (find("#words"));

/** What to tell if the hub refuses what was shown; nothing was shown at first. */
let refusal = "";

/** Whether somebody came back from an identity provider. */
let signedIn = false;

/**
 * Shows a problem beside its field, and has it said with everything else that is.
 * @param {string} selector @param {string} key
 */
function problem(selector, key) {
  const text = key === "" ? "" : element.phrase(key);
  find(selector).textContent = text;
  element.view?.announcer.say(text, true);
}

// Only for those who come back: a description that changes under the focus would be read beside the message.
token.addEventListener("blur", () => token.setAttribute("aria-describedby", "token-about token-problem"));
words.addEventListener("blur", () => words.setAttribute("aria-describedby", "talk-problem"));

/** The page's own words, in the language of the element. */
function translate() {
  const view = element.view;
  if (!view) return;
  document.documentElement.lang = view.words.language;
  document.documentElement.dir = view.words.direction;
  for (const place of document.querySelectorAll("[data-phrase]")) {
    place.textContent = element.phrase(place.getAttribute("data-phrase") ?? "");
  }
  document.title = element.phrase("page.title");
  if (!enter.hidden) void offer();
}

/** Lets the person sign in with an identity provider, if the hub names one. */
async function offer() {
  const signIn = await import("./sign-in.js");
  await signIn.offer(element, find("#providers"), (key) => problem("#token-problem", key));
}

/** The code behind the `#` becomes a token; the address forgets it first. */
async function exchange() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return "";
  history.replaceState(null, "", location.pathname);
  try {
    const answer = await fetch(`${element.base}/page/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code }),
      credentials: "omit",
    });
    if (answer.ok) return String((await answer.json()).token);
  } catch {
    // The hub is asked without a token, below.
  }
  refusal = "page.token.refused";
  return "";
}

/** The token of somebody who comes back from an identity provider, or of a code. */
async function begin() {
  if (!new URLSearchParams(location.search).has("state")) return exchange();
  const { token, problem: why } = await (await import("./sign-in.js")).finish(element);
  [signedIn, refusal] = [token !== "", why];
  return token;
}

element.addEventListener("aaep-words", translate);
element.addEventListener("aaep-dialog", (event) => {
  const { open } = /** @type {CustomEvent} */ (event).detail;
  for (const other of [enter, talk, find(".skip"), find("header")]) other.inert = open;
});
element.addEventListener("aaep-requests", (event) => {
  const { count } = /** @type {CustomEvent} */ (event).detail;
  const title = element.phrase("page.title");
  document.title = count > 0 ? `(${count}) ${title}` : title;
});
element.addEventListener("aaep-state", async (event) => {
  const { connected, mayReply, refused, wantsToken } = /** @type {CustomEvent} */ (event).detail;
  const signIn = signedIn ? await import("./sign-in.js") : null;
  if (connected) {
    enter.hidden = mayReply;
    problem("#token-problem", refusal.startsWith("page.sign_in.") && !signedIn ? refusal : "");
    refusal = "";
    signIn?.heard();
    if (!mayReply) await offer();
  } else if (refused && !wantsToken) {
    // Another token would be refused as well; the element says why.
    enter.hidden = true;
  } else if (refused) {
    if (await signIn?.again(element)) return;
    enter.hidden = false;
    problem("#token-problem", refusal);
    token.focus();
    await offer();
  }
});
element.addEventListener("aaep-sign-in-ends", () => {
  enter.hidden = false;
  void offer();
});

/** Shows the token to the hub. No form sends it: a password manager would offer to keep it. */
function shows() {
  const value = token.value.trim();
  // What can be in a header; the hub judges the rest.
  if (!/^[\w.~+/=-]+$/.test(value)) return problem("#token-problem", "page.token.empty");
  token.value = "";
  [refusal, signedIn] = ["page.token.refused", false];
  void element.connect({ token: value });
}

find("#connect").addEventListener("click", shows);
token.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.isComposing) shows();
});

talk.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = words.value.trim();
  if (text === "") return problem("#talk-problem", "page.talk.empty");
  const sent = await element.say(text);
  problem("#talk-problem", sent.ok ? "" : "page.talk.failed");
  if (sent.ok && words.value.trim() === text) words.value = "";
});

await element.ready;
translate();
await element.connect({ token: await begin() });
