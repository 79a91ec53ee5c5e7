// Requests of the API, and what their answers mean, without sending them.
import type { Endpoint } from "./endpoint.js"
import { APIError, InvalidError, type LostError, TooLargeError, apiError, malformed } from "./errors.js"
import { Members, type Schemas, decode } from "./json.js"
import type { Incoming } from "./platform/platform.js"

export const JSON_TYPE = "application/json"
export const EVENTS = "text/event-stream"
export const CONTENT = "application/octet-stream"
const PROBLEM = "application/problem+json"

const MAX_BODY = 8 << 20 // of a request in JSON, by the server
export const MAX_ANSWER = 8 << 20
export const MAX_RESULT = 256 << 20 // of a result with its artifacts, and of an event
export const MAX_READ = 2 ** 30 // of a file
export const MAX_PROBLEM = 256 << 10
const MAX_ID = 40

// How often a request is sent that the server has not begun, and the longest time between two attempts, in seconds.
const ATTEMPTS = 5
const LONGEST_WAIT = 30
// How long a private server is asked again that is busy, which only this process can have made it: its programs queue.
const PATIENCE = 300

/** A request. `body` is sent as JSON, and `content` is that of a file. */
export interface Request {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  readonly path: string
  readonly query?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: object
  readonly content?: Uint8Array<ArrayBuffer>
  readonly accept?: string
  readonly success?: number
  readonly signal?: AbortSignal | undefined
}

/** Returns path and query as they are sent. */
export function target(request: Request): string {
  const pairs = Object.entries(request.query ?? {}).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}=${encodeURIComponent(wellFormed(one))}`),
  )
  return request.path + (pairs.length > 0 ? `?${pairs.join("&")}` : "")
}

/** Returns the body as it is sent. */
export function encoded(request: Request): Uint8Array<ArrayBuffer> | null {
  if (request.content !== undefined) return request.content
  if (request.body === undefined) return null
  const text = JSON.stringify(request.body, (key, value: unknown) => {
    wellFormed(key)
    if (typeof value === "string") wellFormed(value)
    if (typeof value === "number" && !Number.isFinite(value)) throw new InvalidError(`${key}: ${value} cannot be sent: use a finite number`)
    return value
  })
  const data = new TextEncoder().encode(text)
  if (data.length > MAX_BODY) throw new TooLargeError(`the request has more than ${MAX_BODY >> 20} MiB: write files instead`)
  return data
}

/** Returns the headers that are about the request itself. */
export function headers(request: Request): Record<string, string> {
  const headers: Record<string, string> = { Accept: request.accept ?? JSON_TYPE }
  if (request.content !== undefined) headers["Content-Type"] = CONTENT
  else if (request.body !== undefined) headers["Content-Type"] = JSON_TYPE
  return headers
}

function wellFormed(text: string): string {
  if (!text.isWellFormed()) throw new InvalidError("an argument has text that is not Unicode (a lone surrogate): write it to a file as bytes")
  return text
}

/** Returns text in UTF-8. */
export function encodeText(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(wellFormed(text))
}

/** Returns the media type of an answer, without parameters. */
export function mediaType(answer: Pick<Incoming, "header">): string {
  return (answer.header("content-type").split(";")[0] ?? "").trim().toLowerCase()
}

/** Returns the error for an answer that is not a success. */
export function refusal(answer: Pick<Incoming, "header" | "status">, body: Uint8Array): APIError | LostError {
  const { status } = answer
  if (status >= 200 && status < 300) return malformed(`its status is ${status}, which is unexpected: is the address right?`)
  if (status >= 300 && status < 400) {
    return new APIError("the server redirects to another address, where the key is not sent: use that address", status)
  }
  if (mediaType(answer) !== PROBLEM) {
    return apiError(status, "", `the server answers with status ${status} and not as this API does: is the address right?`)
  }
  try {
    return problem(decode(body), status)
  } catch {
    return apiError(status, "", "")
  }
}

/** Returns the error for a problem of the API. */
export function problem(value: unknown, status = 0): APIError | LostError {
  const o = new Members<Schemas["Problem"]>(value)
  const fields = o.list("fields").slice(0, 100).map((f) => `${f.text("location")}: ${f.text("message")}`).join("; ")
  return apiError(status || o.integer("status"), o.text("code").slice(0, 200), o.text("detail") + (fields && `: ${fields}`))
}

/** Returns after how many seconds to send a request again, of which nothing was begun; null: not at all. */
export function retryAfter(request: Request, answer: Pick<Incoming, "header" | "status">, code: string): number | null {
  const { status } = answer
  const unavailable = request.method === "GET" || ["stopping", "not_ready", "service_unavailable"].includes(code)
  if (status !== 429 && !(status === 503 && unavailable)) return null
  const text = answer.header("retry-after")
  return /^[0-9]{1,5}$/.test(text) && Number(text) <= LONGEST_WAIT ? Number(text) : null
}

/** Tells whether a request is not sent again after an attempt, by the seconds since the first. */
export function isLast(endpoint: Endpoint, code: string, attempt: number, seconds: number): boolean {
  return endpoint.isPrivate && code === "busy" ? seconds > PATIENCE : attempt === ATTEMPTS
}

/** Returns an id that is one element of a path. */
export function checkedID(value: string): string {
  if (!isID(value)) throw new InvalidError(`${JSON.stringify(String(value).slice(0, MAX_ID))} is not an id`)
  return value
}

/** Returns the id of what the server describes. */
export function receivedID(o: { text(name: "id"): string }): string {
  const id = o.text("id")
  if (!isID(id)) throw malformed(`${JSON.stringify(id.slice(0, MAX_ID))} is not an id`)
  return id
}

function isID(value: string): boolean {
  return value.length <= MAX_ID && /^[a-z0-9-]+$/.test(value)
}

/** Members of a body, of which those that may be left out may be undefined. */
type Given<T> = { readonly [K in keyof T]: object extends Pick<T, K> ? Readonly<T[K]> | undefined : T[K] }

/** Returns the members of a body that were given. */
export function given<T extends object>(members: Given<T>): T {
  const isGiven = (value: unknown) => value !== undefined && value !== null && (typeof value !== "object" || Object.keys(value).length > 0)
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isGiven(value))) as T
}

/** Returns a list of texts. A program without types may give a text, which would be a list of its characters. */
export function texts(name: string, values: readonly string[] | undefined): string[] | undefined {
  if (typeof values === "string") throw new InvalidError(`${name}: ${JSON.stringify(values)}: use a list, such as [${JSON.stringify(values)}]`)
  return values && [...values]
}

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }

/** Returns a number of bytes that may have a unit, such as "512m" or "2g". */
export function size(value: number | string | undefined): number | undefined {
  if (typeof value !== "string") return value
  const [, number, unit] = /^([0-9]{1,15})([kmgt]?)$/i.exec(value) ?? []
  const bytes = Number(number) * (UNITS[unit?.toLowerCase() ?? ""] ?? NaN)
  if (!Number.isSafeInteger(bytes)) {
    throw new InvalidError(`${JSON.stringify(value)} is not a size: use a number of bytes, or one with a unit such as "512m" or "2g"`)
  }
  return bytes
}

/** What a sandbox may reach: nothing, all public hosts, or a list of hosts such as ["pypi.org", "*.example.org:443"]. */
export type NetworkAccess = "none" | "full" | readonly string[]

export function networkBody(value: NetworkAccess | undefined): Schemas["Network"] | undefined {
  if (value === undefined) return undefined
  if (value === "none" || value === "full") return { mode: value }
  if (typeof value === "string") throw new InvalidError(`network: ${JSON.stringify(value)}: use "none", "full" or a list of hosts`)
  return { mode: "allow", allow: [...value] }
}
