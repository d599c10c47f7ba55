/** The element for React 18 and 19. On a server it renders the empty element; the script loads in the browser. */

import { createElement, forwardRef, useEffect, useImperativeHandle, useRef, type ReactElement } from "react";

import type { AaepSubscriber, Sent, StateDetail } from "./index.js";

export interface SubscriberProps {
  /** The base of the hub's API, such as `https://hub.example.org/aaep/v1`. */
  base: string;
  /** The user's token. Connects again when it changes. */
  token?: string | undefined;
  /** A language for users who chose none. */
  language?: string | undefined;
  onState?: ((state: StateDetail) => void) | undefined;
  /** How many requests wait. */
  onRequests?: ((count: number) => void) | undefined;
  /** Make the rest of your page `inert` while a dialog is open. */
  onDialog?: ((open: boolean) => void) | undefined;
}

/** What a `ref` gives. */
export interface SubscriberHandle {
  /** Says something to the agent. */
  say(text: string): Promise<Sent>;
  readonly element: AaepSubscriber | null;
}

export const Subscriber = forwardRef<SubscriberHandle, SubscriberProps>(function Subscriber(props, ref): ReactElement {
  const { base, token, language } = props;
  const element = useRef<AaepSubscriber>(null);
  const now = useRef(props);
  now.current = props;
  useImperativeHandle(ref, () => ({
    say: async (text) => (await element.current?.say(text)) ?? { ok: false, status: 0, text: "" },
    get element() {
      return element.current;
    },
  }), []);
  useEffect(() => {
    const it = element.current;
    if (it === null) return undefined;
    const heard: [string, (event: Event) => void][] = [
      ["aaep-state", (event) => now.current.onState?.((event as CustomEvent<StateDetail>).detail)],
      ["aaep-requests", (event) => now.current.onRequests?.((event as CustomEvent<{ count: number }>).detail.count)],
      ["aaep-dialog", (event) => now.current.onDialog?.((event as CustomEvent<{ open: boolean }>).detail.open)],
    ];
    for (const [name, hear] of heard) it.addEventListener(name, hear);
    return () => {
      for (const [name, hear] of heard) it.removeEventListener(name, hear);
    };
  }, []);
  useEffect(() => {
    let current = true;
    void import("@aaep/subscriber").then(async () => {
      // It may have been unmounted, or given another token, meanwhile.
      if (current) await element.current?.connect(token === undefined ? {} : { token });
    });
    return () => {
      current = false;
    };
  }, [base, token]);
  return createElement("aaep-subscriber", { ref: element, base, ...(language !== undefined && { language }) });
});
