/** A session: one thing that the user asked for, from its start to its end. */

import { lastWords, type Agent } from "./agent.js";
import { Refused, SessionOver, Stopped, Unavailable } from "./errors.js";
import { ask, confirmation, Confirm, type Confirmation, type Question } from "./asking.js";
import { Output } from "./output.js";
import { redact } from "./secrets.js";
import { announced, AnnouncedTool, type ToolOptions } from "./tool.js";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Members = { [name: string]: Json };

/** The pause before something that could not be said is tried again. */
const LATER_MS = 1_000;

export interface Progress {
  /** From 0 to 100. */
  percent?: number;
  /** Which step of how many. */
  step?: [number, number];
  description?: string;
  etaSeconds?: number;
}

/** An event with its key: said once, however often it is sent. */
interface Said {
  kind: string;
  payload: Members;
  key: string;
}

export type Ending = "session.completed" | "session.cancelled" | "session.errored";

/** What each end has to say besides its words. */
const ENDINGS: Record<Ending, (session: Session) => Members> = {
  "session.completed": (session) => session.figures,
  "session.cancelled": () => ({ cancelled_by: "producer" }),
  "session.errored": () => ({ error_category: "unknown" }),
};

export class Session {
  readonly id: string;
  /** @internal */
  readonly agent: Agent;
  private readonly began = performance.now();
  private readonly ending = new AbortController();
  private turn: Promise<unknown> = Promise.resolve();
  private readonly deferred: Said[] = [];
  private percent = -5;
  private tools = 0;
  private ended = false;
  private readonly english: boolean;

  /** @internal */
  constructor(agent: Agent, id: string, language: string) {
    this.english = /^en\b/i.test(language);
    this.agent = agent;
    this.id = id;
    void agent.watch(id, (stopped) => this.isOver(stopped ? new Stopped() : new SessionOver()));
  }

  /** Aborts when somebody else ends the session; its reason is `Stopped` if the user did. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  /** Whether somebody else ended it. */
  get isStopped(): boolean {
    return this.ending.signal.aborted;
  }

  /** The agent thinks, and about what. */
  async thinking(about: string): Promise<void> {
    try {
      await this.emit("state.changed", { to_state: "thinking", ...words(about) });
    } catch (error) {
      // While a request waits or a tool runs, the state stays what it is.
      if (!(error instanceof Refused && ["D30", "T16"].includes(error.rule ?? ""))) throw error;
    }
  }

  /** How far a long job is; what is not worth hearing is left out. */
  async progress({ percent, step, description, etaSeconds }: Progress): Promise<void> {
    const far: Members = {};
    if (percent !== undefined) {
      const small = Math.abs(percent - this.percent) < 5 && percent < 100;
      if (small && step === undefined && description === undefined) return;
      this.percent = percent;
      far.percent = Math.max(0, Math.min(100, Math.round(percent)));
    }
    if (step !== undefined) [far.step, far.total_steps] = step;
    if (description !== undefined) far.description = redact(description);
    const said = percent !== undefined ? `${Math.round(percent)} percent done.` : step && `Step ${step[0]} of ${step[1]}.`;
    const told = description === undefined ? ourWords(said ?? "")
      // Figures are in the event besides; our words and the author's are not mixed.
      : words(this.english ? [said, description].filter(Boolean).join(" ") : description);
    const payload: Members = { progress: far, ...told };
    if (etaSeconds !== undefined) payload.eta_ms = etaSeconds * 1000;
    await this.emit("progress.updated", payload);
  }

  /** A tool that needs no consent: `session.tool("search", "Looking for flights.").run(work)`. */
  tool(name: string, summary?: string, options: ToolOptions = {}): AnnouncedTool {
    return announced(this, name, summary === undefined ? ourWords(`The agent uses ${name}.`) : words(summary), options);
  }

  /** Consent to one action: `session.confirm({…}).run(work)`. The work runs only after a yes. */
  confirm<const A extends Json = Json>(wanted: Confirmation<A>): Confirm<A> {
    return confirmation(this, wanted);
  }

  /** Any text for an answer. */
  ask(question: string, options: Question = {}): Promise<string> {
    return ask(this, question, "freetext", options) as Promise<string>;
  }

  /** Yes or no; consent to an action is `confirm`. */
  askYesNo(question: string, options: Question = {}): Promise<boolean> {
    return ask(this, question, "yes_no", options) as Promise<boolean>;
  }

  /** A number. */
  askNumber(question: string, options: Question = {}): Promise<number> {
    return ask(this, question, "numeric", options) as Promise<number>;
  }

  /** One of several things, by its place from 0. */
  async choose(question: string, choices: readonly string[], options: Question = {}): Promise<number> {
    return Number(await ask(this, question, "multiple_choice", { ...options, choices })) - 1;
  }

  /** The answer, as a model streams it: `write` each token, then `finish`. */
  output(): Output {
    return new Output(this);
  }

  /** Any event, without its envelope: the hub fills that. `kind` is its type behind `aaep:agent.`. */
  async emit(kind: string, payload: Members): Promise<void> {
    await this.inTurn(() => this.send({ kind, payload, key: this.agent.newKey() }));
  }

  /** Ends it well. */
  complete(summary: string): Promise<void> {
    return this.finish("session.completed", words(summary));
  }

  /** Gives it up, and says why. */
  cancel(why: string): Promise<void> {
    return this.finish("session.cancelled", words(why));
  }

  /** Ends it with an error. */
  fail(what: string): Promise<void> {
    return this.finish("session.errored", words(what));
  }

  /** @internal Ends it as this error demands. */
  async end(error: unknown): Promise<void> {
    const said = lastWords(error);
    if (said !== undefined && !this.ended) await this.finish(said.kind, ourWords(said.text));
    else this.agent.unwatch(this.id);
  }

  /** `await using session = await agent.open(…)`: given up, unless it was ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.ended && !this.isStopped) await this.finish("session.cancelled", ourWords("The agent gave this up without finishing it."));
  }

  private async finish(kind: Ending, told: Members): Promise<void> {
    const said = { kind, payload: { ...ENDINGS[kind](this), ...told }, key: this.agent.newKey() };
    try {
      await this.inTurn(() => this.send(said));
    } catch (error) {
      if (error instanceof Unavailable) this.say(said);
      throw error;
    } finally {
      this.ended = true;
      this.agent.unwatch(this.id);
    }
  }

  // --- For what belongs to a session. ---

  /** @internal One thing after the other, and before it whatever could not be said yet. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = this.turn.then(async () => {
      await this.catchUp();
      return work();
    });
    this.turn = next.catch(() => undefined);
    return next;
  }

  /** @internal Says how a tool ended. What it did is done, whether or not the hub could be told: then it is told later. */
  async tell(kind: string, payload: Members): Promise<void> {
    const said = { kind, payload, key: this.agent.newKey() };
    try {
      await this.inTurn(() => this.send(said));
    } catch (error) {
      if (error instanceof SessionOver) return; // the hub has said how things stood
      if (error instanceof Refused) return this.tellPlainly(kind, payload, error);
      if (!(error instanceof Unavailable)) throw error;
      process.emitWarning(`${String(payload.tool)} ran, and the hub could not be told yet. It is told once it is back.`);
      this.say(said);
    }
  }

  /** Says it once the hub is back. */
  private say(said: Said): void {
    this.deferred.push(said);
    this.agent.behind(this.sayLater());
  }

  /** These words were refused: what a tool says must never keep its end from being told. */
  private async tellPlainly(kind: string, payload: Members, { rule }: Refused): Promise<void> {
    if (rule === "T15") return; // it was told before
    const plain = { ...payload, ...ourWords(`${String(payload.tool)} is over; the words for it were refused.`) };
    const telling = this.inTurn(() => this.send({ kind, payload: plain, key: this.agent.newKey() }));
    await telling.catch((error: unknown) => {
      if (!(error instanceof SessionOver || error instanceof Refused || error instanceof Unavailable)) throw error;
    });
  }

  /** @internal Ends it well, with words of this package. */
  completeByItself(): Promise<void> {
    return this.finish("session.completed", ourWords("Done."));
  }

  /** @internal What the end of a session says of it. */
  get figures(): Members {
    return { duration_ms: Math.round(performance.now() - this.began), tool_invocations_count: this.tools };
  }

  /** @internal */
  counted(): void {
    this.tools += 1;
  }

  /** @internal A call about this session, as the kind of error that it is. */
  async noticing<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof Refused && error.status === 404)) throw error;
      const over = await this.agent.whyOver(this.id);
      this.isOver(over);
      throw over;
    }
  }

  /** @internal */
  isOver(reason: SessionOver): void {
    if (!this.ending.signal.aborted) this.ending.abort(reason);
  }

  private async send({ kind, payload, key }: Said): Promise<void> {
    this.signal.throwIfAborted();
    const path = `agent/sessions/${this.id}/events`;
    await this.noticing(this.agent.change("POST", path, { type: `aaep:agent.${kind}`, ...payload }, key));
  }

  private async catchUp(): Promise<void> {
    for (let said = this.deferred[0]; said !== undefined; said = this.deferred[0]) {
      if (!this.isStopped) {
        await this.send(said).catch((error: unknown) => {
          if (error instanceof Unavailable) throw error;
        });
      }
      this.deferred.shift();
    }
  }

  private async sayLater(): Promise<void> {
    while (this.deferred.length > 0 && !this.isStopped) {
      await new Promise<void>((done) => setTimeout(done, LATER_MS).unref());
      await this.inTurn(async () => undefined).catch(() => undefined);
    }
  }
}

/** The summaries of an event, without secrets; a sentence stands for all three. */
export function words(sentence: string): Members {
  const said = redact(sentence);
  const terse = [...sentence].length <= 2000 ? { summary_terse: said } : {};
  return { ...terse, summary_normal: said, summary_detailed: said };
}

/** A sentence of this package is English, whatever the session speaks, and labelled so. */
export const ourWords = (sentence: string): Members =>
  ({ ...words(sentence), localization_hints: { primary_language: "en" } });
