// What an event says of itself: its type, its texts, what names it; and the request that it makes.

const NAMESPACES = ["aaep:", "https://aaep-protocol.org/types/", "https://aaep-protocol.org/vocab/v1#"];

/** @param {unknown} value @returns {string} */
export const textOf = (value) => (typeof value === "string" ? value : "");
/**
 * The name of a core type, without `aaep:agent.`; other types as they are.
 * @param {any} event
 * @returns {string}
 */
export function typeOf(event) {
  const type = textOf(event.type);
  for (const namespace of NAMESPACES) {
    if (type.startsWith(`${namespace}agent.`)) return type.slice(namespace.length + 6);
  }
  return type;
}

/**
 * What names an event: ids count within their session, so that no session can touch another's.
 * @param {{session_id: string, event_id: string}} event
 */
export const keyOf = ({ session_id, event_id }) => `${session_id} ${event_id}`;

/** Seconds that a request waits which does not say how long. */
const TIMEOUT_SECONDS = 300;

/** @param {Choice} choice */
export const choiceLabel = ({ value, label }) => (label.trim() === "" ? value : label);

/**
 * A request as its event says it.
 * @param {any} event @param {string} type @param {Agent} agent @param {number} now
 * @returns {AgentRequest}
 */
export function read(event, type, agent, now) {
  const consent = type === "awaiting.confirmation";
  const timeout = Number.isInteger(event.timeout_seconds) ? event.timeout_seconds : TIMEOUT_SECONDS;
  const asked = Date.parse(textOf(event.timestamp));
  return {
    number: 0,
    shown_number: 0,
    agent,
    event_id: event.event_id,
    session_id: event.session_id,
    reply_token: event.reply_token,
    asks: consent ? "consent" : "answer",
    action: textOf(consent ? event.action : event.question),
    consequence: textOf(event.consequence),
    context: textOf(event.context),
    risk: ["low", "medium"].includes(event.risk_level) ? event.risk_level : "high",
    reversibility: reversibility(event),
    silence_accepts: event.default_decision === "accept",
    kinds: kinds(event),
    choices: choices(event),
    default: typeof event.default_response === "string" ? event.default_response : null,
    account: accountOf(event),
    agent_says: textOf(event.extra_context?.agent_says),
    timeout_seconds: timeout,
    deadline_ms: (Number.isNaN(asked) ? now : Math.min(asked, now)) + timeout * 1000,
    continues: null,
    changed: false,
    language: textOf(event.localization_hints?.primary_language),
    event,
  };
}

/** Everything that a person is asked, and not how long it waits. */
const ASKED = /** @type {const} */ (["asks", "action", "consequence", "context", "risk", "reversibility",
  "silence_accepts", "kinds", "choices", "default", "account", "agent_says", "agent", "language"]);

/** Whether two requests ask the same. @param {AgentRequest} one @param {AgentRequest} other */
export function isSame(one, other) {
  return ASKED.every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}

/**
 * The hub's own account of what would run: no word of the agent's.
 * @param {any} event
 * @returns {Account | null}
 */
function accountOf(event) {
  const action = event.extensions?.action;
  if (action === null || typeof action !== "object" || textOf(action.tool) === "") return null;
  return {
    tool: textOf(action.tool),
    arguments: textOf(action.arguments),
    digest: textOf(action.digest),
    by_policy: action.described_by === "policy",
    shortened: action.shortened === true,
    redacted: action.redacted === true,
  };
}

/** D10: what is not said counts as the worst. @param {any} event @returns {AgentRequest["reversibility"]} */
function reversibility(event) {
  if (event.irreversible === true) return "irreversible";
  if (event.reversibility === "reversible_with_effort") return "reversible_with_effort";
  if (event.reversibility === "reversible") return "reversible";
  if (event.reversibility === undefined && event.irreversible === false) return "reversible";
  return "irreversible";
}

const KINDS = ["yes_no", "multiple_choice", "numeric", "freetext"];

/** D18: free text when nothing is said, or nothing that we know. @param {any} event @returns {string[]} */
function kinds(event) {
  const said = Array.isArray(event.accepted_response_kinds) ? event.accepted_response_kinds : [];
  const known = KINDS.filter((kind) => said.includes(kind));
  return known.length > 0 ? known : ["freetext"];
}

/** @param {any} event @returns {Choice[]} */
function choices(event) {
  if (!Array.isArray(event.choices)) return [];
  return event.choices
    .filter((/** @type {any} */ choice) => typeof choice?.value === "string")
    .slice(0, 32)
    .map((/** @type {any} */ { value, label }) => ({ value, label: textOf(label) }));
}
