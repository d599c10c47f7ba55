// What an event says of itself: its type, its texts, and what names it.

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
