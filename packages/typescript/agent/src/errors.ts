/** What can go wrong, by whose fault it is. */

/** What a hub says of a refusal. */
export interface Problem {
  error?: string;
  rule?: string;
  section?: string;
  text?: string;
}

/** The base of every error of this package. */
export class AaepError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** This package was misused; nothing was sent. */
export class Misuse extends AaepError {}

/** The hub refused, and nothing has changed there. `status` is HTTP's, `rule` the rule of the protocol. */
export class Refused extends AaepError {
  readonly status: number;
  readonly rule: string | undefined;
  /** The word for programs, such as `conflict`. */
  readonly word: string | undefined;

  constructor(status: number, problem: Problem) {
    super(`${problem.text ?? "This does not look like a hub."} (status ${status}, rule ${problem.rule ?? "none"})`);
    this.status = status;
    this.rule = problem.rule;
    this.word = problem.error;
  }
}

/** Why there is no yes. */
export type NoReason = "rejected" | "timed_out" | "expired" | "cancelled" | "begun";

/** There is no yes, and nothing has run. Of a rejection, `by` says who and `rationale` why, if they said it. */
export class NotApproved extends AaepError {
  readonly reason: NoReason;
  readonly by: string | undefined;
  readonly rationale: string | undefined;

  constructor(reason: NoReason, by?: string, rationale?: string) {
    super(`Not approved: ${reason.replace("_", " ")}. It was not run.`);
    this.reason = reason;
    this.by = by;
    this.rationale = rationale;
  }
}

/** A question has no answer. Never guess one. */
export class Unanswered extends AaepError {
  readonly reason: "timed_out" | "cancelled";

  constructor(reason: "timed_out" | "cancelled") {
    super(reason === "timed_out" ? "Nobody answered in time." : "The question was withdrawn.");
    this.reason = reason;
  }
}

/** The session is over: its user stopped it, or the hub ended it. Do nothing more for it. */
export class SessionOver extends AaepError {
  constructor(message = "The session is over; do nothing more for it.") {
    super(message);
  }
}

/** The user stopped the agent. That is no failure: end what you do, and start nothing new. */
export class Stopped extends SessionOver {
  constructor() {
    super("The user stopped this session; do nothing more for it.");
  }
}

/** The hub could not be asked, and has not done it. */
export class Unavailable extends AaepError {}

/** The hub was asked and gave no answer; nobody knows whether it was done. */
export class InDoubt extends Unavailable {}

/** Another user's program is at the other end, or nobody can tell whose. Nothing was sent. */
export class Stranger extends AaepError {}
