// Requests by node:http. Unlike fetch, it speaks with Unix sockets, has no time limit of its own for answers, and sends a large
// body only if the server asks for it.
import * as http from "node:http"
import * as https from "node:https"
import type { Endpoint } from "../endpoint.js"
import { ConnectError, LostError, reason } from "../errors.js"
import type { Incoming, Outgoing, Transport } from "./platform.js"

const CONNECT_TIME = 10_000
// A server closes a connection that is idle for 2 minutes.
const MAX_IDLE_TIME = 60_000
// Larger bodies are sent once the server asks for them, so that what is refused is not sent.
const SMALL_BODY = 64 << 10
// Something between may not know of 100 Continue.
const PROCEED_TIME = 2_000

/** Sends requests to one server, and keeps idle connections to it, which do not keep the process alive. */
export class HTTPTransport implements Transport {
  readonly #endpoint: Endpoint
  readonly #agent: http.Agent
  readonly #request: typeof http.request
  readonly #where: http.RequestOptions

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
    const library = endpoint.origin.startsWith("https:") ? https : http
    // Deno sends a request again whose connection was used before and ends, also if it was aborted: code would run twice.
    this.#agent = new library.Agent({ keepAlive: !("Deno" in globalThis), timeout: MAX_IDLE_TIME })
    this.#request = library.request
    if (endpoint.socket) {
      this.#where = { socketPath: endpoint.socket }
    } else {
      const { hostname, port } = new URL(endpoint.origin)
      this.#where = { hostname: hostname.replace(/^\[|\]$/g, ""), port }
    }
  }

  async send(request: Outgoing): Promise<Incoming> {
    request.signal?.throwIfAborted()
    try {
      return await this.#exchange(request, this.#agent)
    } catch (error) {
      if (!(error instanceof StaleError)) throw error
      return await this.#exchange(request, false)
    }
  }

  #exchange(outgoing: Outgoing, agent: http.Agent | false): Promise<Incoming> {
    const { method, target: path, body, signal } = outgoing
    const length = body?.length ?? 0
    const waits = length > SMALL_BODY
    const headers: Record<string, string> = { ...outgoing.headers }
    if (this.#endpoint.socket) headers["Host"] = "localhost"
    if (length || method !== "GET") headers["Content-Length"] = String(length)
    if (waits) headers["Expect"] = "100-continue"

    return new Promise((resolve, reject) => {
      const request = this.#request({ ...this.#where, method, path, headers, agent })
      let connected = false
      let sent = false
      let proceed: NodeJS.Timeout | undefined
      const late = setTimeout(() => request.destroy(new Error(`it did not answer within ${CONNECT_TIME / 1000} seconds`)), CONNECT_TIME)
      const sendBody = () => {
        clearTimeout(proceed)
        if (!sent) request.end(body ?? undefined)
        sent = true
      }
      const abort = () => request.destroy()
      const ended = () => {
        clearTimeout(late)
        clearTimeout(proceed)
        signal?.removeEventListener("abort", abort)
      }
      signal?.addEventListener("abort", abort)
      request.on("socket", (socket) => {
        const onConnect = () => {
          connected = true
          clearTimeout(late)
          if (waits) proceed = setTimeout(sendBody, PROCEED_TIME)
        }
        if (request.reusedSocket) onConnect()
        else socket.once("encrypted" in socket ? "secureConnect" : "connect", onConnect)
      })
      request.on("continue", sendBody)
      request.on("error", (error) => {
        ended()
        if (signal?.aborted) reject(signal.reason)
        // The server has closed the connection before the request came.
        else if (request.reusedSocket && method === "GET" && agent) reject(new StaleError())
        else reject(connected ? lost(this.#endpoint, error) : unreachable(this.#endpoint, error))
      })
      request.on("response", (response) => {
        clearTimeout(late)
        clearTimeout(proceed)
        response.on("error", () => {}) // who reads the body is told
        response.on("close", ended)
        if (!sent) response.on("end", abort) // the server still expects the body: the connection cannot be used again
        resolve({
          status: response.statusCode ?? 0,
          header: (name) => String(response.headers[name] ?? ""),
          body: response[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>,
          delimited: "content-length" in response.headers || "transfer-encoding" in response.headers,
          close: abort,
        })
      })
      if (waits) request.flushHeaders()
      else sendBody()
    })
  }
}

/** An idle connection had ended when a request was sent. */
class StaleError extends Error {}

function unreachable(endpoint: Endpoint, cause: Error): ConnectError {
  const message = endpoint.isPrivate
    ? "the private server of this process has ended, and its sandboxes with it: open another sandbox"
    : `the server at ${endpoint} was not reached: ${reason(cause)}`
  return new ConnectError(message, { cause })
}

function lost(endpoint: Endpoint, cause: Error): LostError {
  const server = endpoint.isPrivate ? "the private server of this process" : `the server at ${endpoint}`
  return new LostError(`the connection to ${server} ended: ${reason(cause)}`, { cause })
}
