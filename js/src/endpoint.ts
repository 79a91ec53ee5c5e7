// Where a server is, and the key with which it is used.
import { InvalidError } from "./errors.js"

/** The address of a server. With a `socket`, it is that path in the file system in place of an origin. */
export class Endpoint {
  readonly #key: string // not shown where an endpoint is printed

  constructor(
    /** Such as https://sandboxes.example.org; empty with a socket. */
    readonly origin: string,
    readonly socket: string,
    /** Of all paths. */
    readonly prefix: string,
    key: string,
    /** It is the private server of this process. */
    readonly isPrivate = false,
  ) {
    this.#key = key
  }

  toString(): string {
    return this.socket ? `unix:${this.socket}` : this.origin + this.prefix
  }

  /** Returns the headers that all requests to this server have. */
  headers(): Record<string, string> {
    return this.#key ? { Authorization: `Bearer ${this.#key}` } : {}
  }
}

/** Returns the endpoint of a URL such as https://sandboxes.example.org or unix:/run/llmsandbox.sock. */
export function parseEndpoint(url: string, key: string): Endpoint {
  if (/[^!-~]/.test(key)) throw new InvalidError("the API key has spaces, line breaks or other characters that no key has")
  if (url.startsWith("unix:")) {
    const path = url.slice("unix:".length)
    if (!path.startsWith("/")) throw new InvalidError("the server's URL: unix: must be followed by an absolute path")
    return new Endpoint("", path, "", key)
  }
  let parts: URL
  try {
    if (!/^https?:\/\/[^/]/i.test(url)) throw new TypeError()
    parts = new URL(url)
  } catch {
    // The error would show the URL, which may have a password in it.
    throw new InvalidError("the server's URL: use https://HOST[:PORT], unix:PATH, or http:// on the loopback")
  }
  if (parts.username || parts.password || /[^!-~]|[?#]/.test(url)) {
    throw new InvalidError("the server's URL has a user, a query, a fragment or spaces: leave them out; the key is an option of its own")
  }
  return new Endpoint(parts.origin, "", parts.pathname.replace(/\/+$/, ""), key)
}
