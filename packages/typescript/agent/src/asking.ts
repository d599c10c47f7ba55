/** Asking people: for consent to an action, and questions. */

import { Misuse, NotApproved, SessionOver, Unanswered, Unavailable, type NoReason } from "./errors.js";
import { redact } from "./secrets.js";
import type { Json, Members, Session } from "./session.js";
import { carryOut, type Call } from "./tool.js";

/** What consent is asked for. */
export interface Confirmation<A extends Json = Json> {
  tool: string;
  /** Consent is bound to these; carry amounts as texts. */
  arguments?: A;
  /** What it will do, in a sentence. */
  action: string;
  /** What comes of it. */
  consequence: string;
  /** How far it can be taken back: not at all, unless this says otherwise. */
  undo?: "never" | "with_effort" | "easily";
  /** How much can go wrong; high unless it is said. */
  risk?: "low" | "medium" | "high";
  /** How long an answer is waited for, from a second to a day. */
  timeoutSeconds?: number;
  /** Goes on if nobody answers. Only for what is easily undone, and of low or medium risk. */
  acceptOnSilence?: boolean;
}

export interface Question {
  /** Why it is asked. */
  context?: string;
  timeoutSeconds?: number;
  /** What counts when nobody answers; the user is told. */
  default?: string;
}

/** An action that was not asked about yet. There is no way to it but `run`. */
export interface Confirm<A extends Json = Json> {
  /** Asks, waits, and runs the work if somebody said yes; otherwise it throws `NotApproved`. */
  run<T>(work: (call: Call<A>) => Promise<T> | T): Promise<T>;
}

/** How long an answer is waited for, by risk. */
const USUAL_SECONDS = { low: 60, medium: 120, high: 300 } as const;

/** The longest wait that is asked of the hub, in seconds. */
const WAIT = 30;

const REVERSIBILITY = { never: "irreversible", with_effort: "reversible_with_effort", easily: "reversible" } as const;

export function confirmation<A extends Json>(session: Session, wanted: Confirmation<A>): Confirm<A> {
  const { tool, undo = "never", risk = "high", acceptOnSilence = false } = wanted;
  const [action, consequence] = [redact(wanted.action), redact(wanted.consequence)];
  const both = `${action} ${consequence}`;
  const seconds = wanted.timeoutSeconds ?? USUAL_SECONDS[risk];
  if (acceptOnSilence && (undo !== "easily" || risk === "high")) {
    throw new Misuse("Silence can mean yes only to what is easily undone and of low or medium risk; say both. (C15)");
  }
  if (!(seconds >= 1 && seconds <= 86_400)) throw new Misuse("Wait 1 to 86400 seconds for an answer. (T20)");
  const short = [...action].length <= 2000 ? { summary_terse: action } : {};
  const body: Members = {
    kind: "confirmation", tool, action, consequence,
    timeout_seconds: seconds, default_decision: acceptOnSilence ? "accept" : "reject",
    risk_level: risk, irreversible: undo === "never", reversibility: REVERSIBILITY[undo],
    ...short, summary_normal: action, summary_detailed: action.endsWith(".") ? both : redact(both),
    ...(wanted.arguments !== undefined && { arguments: wanted.arguments }),
  };
  return {
    async run(work) {
      const { state, path, withdraw } = await waited(session, body);
      if (state.status !== "accepted") throw refusal(state, session);
      const key = session.agent.newKey();
      const spent = session.inTurn(() =>
        session.noticing(session.agent.change("POST", `${path}/invoke`, invocation(wanted.arguments), key)));
      const granted = await spent.catch((error: unknown) => {
        if (!(error instanceof Unavailable)) withdraw();
        throw error;
      });
      // Run what came back: it is what was confirmed.
      const begun = { id: String(granted.tool_call_id), tool, arguments: granted.arguments as A, key, by: text(state.decided_by) };
      return carryOut(session, begun, work);
    },
  };
}

const invocation = (given: Json | undefined): Members => (given === undefined ? {} : { arguments: given });

/** An answer, or `Unanswered`. */
export async function ask(
  session: Session,
  question: string,
  kind: string,
  { context, timeoutSeconds = 180, choices, default: otherwise }: Question & { choices?: readonly string[] },
): Promise<Json> {
  const body: Members = {
    kind: "clarification", question: redact(question), summary_normal: redact(question),
    timeout_seconds: timeoutSeconds, accepted_response_kinds: [kind],
  };
  if (context !== undefined) body.context = redact(context);
  if (choices !== undefined) body.choices = choices.map((label, at) => ({ value: `${at + 1}`, label: redact(label) }));
  if (otherwise !== undefined) body.default_response = otherwise;
  const { state } = await waited(session, body);
  if (state.response !== undefined) return state.response;
  if (state.status === "timed_out" || state.status === "unanswered") throw new Unanswered("timed_out");
  if (state.decided_by === "session") throw await session.agent.whyOver(session.id);
  throw new Unanswered("cancelled");
}

/** Asks, and waits for the outcome. When the session is over, whoever waits is told so. */
async function waited(session: Session, body: Members): Promise<{ state: Members; path: string; withdraw: () => void }> {
  session.signal.throwIfAborted();
  const asked = await session.inTurn(() =>
    session.noticing(session.agent.change("POST", `agent/sessions/${session.id}/requests`, body)));
  const path = `agent/requests/${String(asked.request_id)}`;
  const withdraw = () => session.agent.behind(session.agent.change("DELETE", path).then(() => undefined, () => undefined));
  let state = asked;
  try {
    while (state.status === "pending") state = await session.noticing(session.agent.look(`${path}?wait=${WAIT}`));
  } catch (error) {
    // Nobody waits for an answer any longer: people are not left with the question.
    if (!(error instanceof SessionOver)) withdraw();
    throw error;
  }
  if (state.decided_by === "session") {
    const over = await session.agent.whyOver(session.id);
    session.isOver(over);
    throw over;
  }
  return { state, path, withdraw };
}

/** Why there is no yes. */
function refusal({ status, decided_by: by, reply }: Members, _: Session): NotApproved {
  const known: Record<string, NoReason> = {
    rejected: "rejected", timed_out: "timed_out", expired: "expired", invoked: "begun", completed: "begun", unknown: "begun",
  };
  const said = typeof reply === "object" && reply !== null && !Array.isArray(reply) ? reply : {};
  return new NotApproved(known[String(status)] ?? "cancelled", text(by), text(said.decision_rationale));
}

const text = (value: Json | undefined) => (typeof value === "string" ? value : undefined);
