/** The element `<aaep-subscriber>`: hears agents and answers them, on any page. */

/** What became of a message. */
export interface Sent {
  ok: boolean;
  status: number;
  text: string;
}

export interface StateDetail {
  connected: boolean;
  /** Whether answers from here count. */
  mayReply?: boolean;
  /** The status with which the hub refused the token. */
  refused?: number;
  /** It is not the hub that was known. */
  impostor?: string;
  text?: string;
}

export interface SubscriberEvents {
  "aaep-state": CustomEvent<StateDetail>;
  /** How many requests wait. */
  "aaep-requests": CustomEvent<{ count: number }>;
  /** Make the rest of your page `inert` while a dialog is open. */
  "aaep-dialog": CustomEvent<{ open: boolean }>;
  "aaep-words": CustomEvent<Record<string, never>>;
}

export class AaepSubscriber extends HTMLElement {
  /** Settled when words are there and the element can be used. */
  readonly ready: Promise<void>;
  /** The base of the hub's API: the attribute `base`, or that of the hub that the script comes from. */
  readonly base: string;
  /** Connects; call it again with another token. The token stays in memory. */
  connect(options?: { token?: string }): Promise<void>;
  /** Says something to the agent. */
  say(text: string): Promise<Sent>;
  /** A phrase of the message files, for the page around. */
  phrase(key: string): string;
  addEventListener<K extends keyof SubscriberEvents>(
    type: K, listener: (this: AaepSubscriber, event: SubscriberEvents[K]) => unknown, options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "aaep-subscriber": AaepSubscriber;
  }
}
