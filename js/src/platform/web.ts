// Browsers and edge runtimes, which have fetch, and neither processes nor Unix sockets.
import type { Endpoint } from "../endpoint.js"
import { InvalidError, LostError, StartError, reason } from "../errors.js"
import type { Incoming, Outgoing, Platform, Transport } from "./platform.js"

class FetchTransport implements Transport {
  readonly #endpoint: Endpoint

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
  }

  async send(request: Outgoing): Promise<Incoming> {
    const { method, headers, body, signal } = request
    let response: Response
    try {
      response = await fetch(this.#endpoint.origin + request.target, {
        method,
        headers,
        body,
        redirect: "manual", // the key is for this server only
        ...(signal && { signal }),
      })
    } catch (error) {
      signal?.throwIfAborted()
      // Whether the request had been sent is not told.
      throw new LostError(`the connection to the server at ${this.#endpoint} failed: ${reason(error)}`, { cause: error })
    }
    const reader = response.body?.getReader()
    return {
      // A browser does not show what a redirect is.
      status: response.type === "opaqueredirect" ? 307 : response.status,
      header: (name) => response.headers.get(name) ?? "",
      body: {
        next: async () => {
          const piece = await reader?.read()
          return piece?.value ? { value: piece.value } : { done: true, value: undefined }
        },
      },
      delimited: true, // as far as fetch tells
      close: () => void reader?.cancel().catch(() => {}), // it may have failed already
    }
  }
}

const platform: Platform = {
  connect(endpoint) {
    if (endpoint.socket) throw new InvalidError("the server's URL: a Unix socket needs Node, Bun or Deno; use https://HOST[:PORT]")
    return new FetchTransport(endpoint)
  },
  async startPrivate() {
    throw new StartError("a private server needs Node, Bun or Deno: use a server with new Client({ url, apiKey })")
  },
}
export default platform
