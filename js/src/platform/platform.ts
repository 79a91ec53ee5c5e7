// What differs between Node, Bun and Deno on one side, and browsers and edge runtimes on the other.
import type { Endpoint } from "../endpoint.js"

/** A request as it is sent. */
export interface Outgoing {
  readonly method: string
  /** Path and query, percent-encoded. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer> | null
  readonly signal: AbortSignal | undefined
}

/** An answer whose head has come. Its body has to be read to its end, or closed. */
export interface Incoming {
  readonly status: number
  /** Returns the value of a header by its name in lower case; "" without one. */
  header(name: string): string
  readonly body: AsyncIterator<Uint8Array>
  /** The end of the body differs from the end of the connection. */
  readonly delimited: boolean
  /** Ends the connection. The server then ends what it does for this request. */
  close(): void
}

/** Sends requests to one server. */
export interface Transport {
  /** Fails with ConnectError if nothing was sent, and with LostError if there is no answer. */
  send(request: Outgoing): Promise<Incoming>
}

/** A server and the way to it. */
export interface Connected {
  readonly endpoint: Endpoint
  readonly transport: Transport
}

/** What a runtime has. */
export interface Platform {
  /** Returns the way to a server that was named by its URL. */
  connect(endpoint: Endpoint): Transport
  /** Returns the private server of this process with some flags, which it starts if that does not run. */
  startPrivate(args: readonly string[]): Promise<Connected>
}
