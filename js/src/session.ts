// Sends requests to one server and reads its answers.
import { APIError, LostError, malformed, printable, reason } from "./errors.js"
import { EventDecoder, type ServerEvent, join } from "./events.js"
import { Members, decode } from "./json.js"
import type { Connected, Incoming } from "./platform/platform.js"
import {
  CONTENT, EVENTS, MAX_ANSWER, MAX_PROBLEM, MAX_READ, MAX_RESULT, type Request,
  encoded, headers, isLast, mediaType, problem, refusal, retryAfter, target,
} from "./request.js"
import type { Cell, Result, RunEvent } from "./results.js"

type Outcome<R> = new (value: unknown) => R

/** Sends requests to one server. Their paths are below a base. */
export class Session {
  readonly #server: Connected
  readonly #base: string

  constructor(server: Connected, base = "") {
    this.#server = server
    this.#base = base
  }

  /** Whether it is the private server of this process. */
  get isPrivate(): boolean {
    return this.#server.endpoint.isPrivate
  }

  /** Returns a session for requests below a path. */
  below(base: string): Session {
    return new Session(this.#server, this.#base + base)
  }

  /** Returns the JSON object of an answer. */
  async json<T extends object>(request: Request): Promise<Members<T>> {
    return new Members<T>(decode(await (await this.#send(request)).read(MAX_ANSWER)))
  }

  /** Sends a request whose answer has no content. */
  async empty(request: Request): Promise<void> {
    await (await this.#send({ ...request, success: 204 })).read(0)
  }

  /** Returns the content of a file. */
  async content(request: Request): Promise<Uint8Array<ArrayBuffer>> {
    const answer = await this.#send({ ...request, accept: CONTENT })
    if (mediaType(answer.head) !== CONTENT || !answer.head.delimited) {
      answer.head.close()
      throw malformed("it is not a file's content whose end can be seen")
    }
    return answer.read(MAX_READ)
  }

  /** Returns the result of code that is run. */
  async result<R extends Result | Cell>(request: Request, outcome: Outcome<R>): Promise<R> {
    return known(new outcome(decode(await (await this.#send(request)).read(MAX_RESULT))))
  }

  /** Yields the events of code that is run, up to its end. The server ends the code if the generator is left before. */
  async *events<R extends Result | Cell>(request: Request, outcome: Outcome<R>): AsyncGenerator<RunEvent<R>, void, undefined> {
    const answer = await this.#send({ ...request, accept: EVENTS })
    try {
      if (mediaType(answer.head) !== EVENTS) throw malformed("it is not a stream of events")
      const decoder = new EventDecoder(MAX_RESULT)
      for (;;) {
        const piece = await answer.piece()
        if (piece === null) throw new LostError("the server's stream ended too early")
        for (const received of decoder.feed(piece)) {
          const event = runEvent(received, outcome)
          if (event === null) continue
          yield event
          if (event.kind === "done") return
        }
      }
    } finally {
      answer.close()
    }
  }

  /** Sends a request, again if nothing was begun, and returns its answer, which is a success. */
  async #send(request: Request): Promise<Answer> {
    const { endpoint, transport } = this.#server
    const outgoing = {
      method: request.method,
      target: endpoint.prefix + this.#base + target(request),
      headers: { ...endpoint.headers(), ...headers(request) },
      body: encoded(request),
      signal: request.signal,
    }
    const since = performance.now()
    for (let attempt = 1; ; attempt++) {
      const answer = new Answer(await transport.send(outgoing), request.signal)
      const { head } = answer
      if (head.status === (request.success ?? 200)) return answer
      const refused = refusal(head, await answer.read(MAX_PROBLEM))
      const code = refused instanceof APIError ? refused.code : ""
      const wait = retryAfter(request, head, code)
      if (wait === null || isLast(endpoint, code, attempt, (performance.now() - since) / 1000)) throw refused
      await sleep(wait, request.signal)
    }
  }
}

/** An answer whose head has come. */
class Answer {
  readonly head: Incoming
  readonly #signal: AbortSignal | undefined
  #left: number // of a body whose length was told
  #ended = false

  constructor(head: Incoming, signal: AbortSignal | undefined) {
    this.head = head
    this.#signal = signal
    const length = head.header("content-length")
    // What is decoded on the way has another length.
    this.#left = /^[0-9]+$/.test(length) && !head.header("content-encoding") ? Number(length) : NaN
  }

  /** Returns a piece of the body; null is its end. Fails with LostError where it did not come to its end. */
  async piece(): Promise<Uint8Array | null> {
    let next: IteratorResult<Uint8Array>
    try {
      next = await this.head.body.next()
    } catch (error) {
      this.#signal?.throwIfAborted()
      throw new LostError(`the connection to the server ended: ${reason(error)}`, { cause: error })
    }
    this.#signal?.throwIfAborted()
    if (!next.done) {
      this.#left -= next.value.length
      return next.value
    }
    this.#ended = true
    if (this.#left > 0 && this.head.status !== 204) throw new LostError("the connection to the server ended too early")
    return null
  }

  /** Returns the whole body. Fails if it is larger than `most` bytes. */
  async read(most: number): Promise<Uint8Array<ArrayBuffer>> {
    try {
      const pieces: Uint8Array[] = []
      let size = 0
      for (let piece = await this.piece(); piece !== null; piece = await this.piece()) {
        size += piece.length
        if (size > most) throw malformed(`it has more than ${most} bytes`)
        pieces.push(piece)
      }
      return join(pieces)
    } finally {
      this.close()
    }
  }

  /** Ends the connection if the answer did not come to its end. */
  close(): void {
    if (!this.#ended) this.head.close()
  }
}

/** Returns the event of a run that a server's event stands for; null: it stands for none. */
function runEvent<R extends Result | Cell>({ name, data }: ServerEvent, outcome: Outcome<R>): RunEvent<R> | null {
  switch (name) {
    case "stdout":
    case "stderr": {
      const text = decode(data)
      if (typeof text !== "string") throw malformed("output is not text")
      return { kind: name, text }
    }
    case "result":
      return { kind: "done", result: known(new outcome(decode(data))) }
    case "problem":
      throw problem(decode(data))
    default:
      return null
  }
}

/** Returns a result, unless the server says that it has lost the run. */
function known<R extends Result | Cell>(result: R): R {
  if (result.status === "lost") throw new LostError(`the server has lost the run: ${printable(result.reason)}`, { result })
  return result
}

async function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    await untilAborted(new Promise((resolve) => (timer = setTimeout(resolve, seconds * 1000))), signal)
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for a promise, and no longer than until a signal. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  signal.throwIfAborted()
  let abort: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => signal.addEventListener("abort", (abort = () => reject(signal.reason))))
  try {
    return await Promise.race([promise, aborted])
  } finally {
    if (abort) signal.removeEventListener("abort", abort)
  }
}
