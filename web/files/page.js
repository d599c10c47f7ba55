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

/** Whether a token was tried, so that a refusal is worth telling. */
let tried = false;

/** @param {string} selector @param {string} key */
function problem(selector, key) {
  find(selector).textContent = key === "" ? "" : element.phrase(key);
}

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
  tried = true;
  return "";
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
element.addEventListener("aaep-state", (event) => {
  const { connected, mayReply, refused, wantsToken } = /** @type {CustomEvent} */ (event).detail;
  if (connected) {
    enter.hidden = mayReply;
    problem("#token-problem", "");
    tried = false;
  } else if (refused && !wantsToken) {
    // Another token would be refused as well; the element says why.
    enter.hidden = true;
  } else if (refused) {
    enter.hidden = false;
    problem("#token-problem", tried ? "page.token.refused" : "");
    token.focus();
  }
});

enter.addEventListener("submit", (event) => {
  event.preventDefault();
  const value = token.value.trim();
  // What can be in a header; the hub judges the rest.
  if (!/^[\w.~+/=-]+$/.test(value)) return problem("#token-problem", "page.token.empty");
  token.value = "";
  tried = true;
  void element.connect({ token: value });
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
await element.connect({ token: await exchange() });
