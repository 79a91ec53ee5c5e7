// Server-Sent Events, as they come in pieces of any size.
import { malformed } from "./errors.js"

const NEWLINE = 10
const utf8 = new TextDecoder()

/** An event of the server's stream. */
export interface ServerEvent {
  readonly name: string
  readonly data: Uint8Array
}

/** Decodes a stream of events. None may be longer than `most` bytes. */
export class EventDecoder {
  readonly #most: number
  #line: Uint8Array[] = [] // what has come of a line
  #name = ""
  #data: Uint8Array[] = []
  #size = 0 // of both

  constructor(most: number) {
    this.#most = most
  }

  /** Takes what has come and returns the events that end in it. */
  feed(piece: Uint8Array): ServerEvent[] {
    const events: ServerEvent[] = []
    let start = 0
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      this.#keep(piece.subarray(start, end))
      start = end + 1
      const event = this.#endLine(join(this.#line))
      if (event) events.push(event)
    }
    this.#keep(piece.subarray(start))
    return events
  }

  #keep(part: Uint8Array): void {
    this.#size += part.length
    if (this.#size > this.#most) throw malformed(`an event has more than ${this.#most} bytes`)
    if (part.length > 0) this.#line.push(part.slice()) // its memory may be used again
  }

  #endLine(line: Uint8Array): ServerEvent | null {
    this.#line = []
    if (line.at(-1) === 13) line = line.subarray(0, -1)
    if (line.length === 0) {
      const event = this.#name ? { name: this.#name, data: join(this.#data) } : null
      this.#name = ""
      this.#data = []
      this.#size = 0
      return event
    }
    const colon = line.indexOf(58)
    const field = colon < 0 ? line : line.subarray(0, colon)
    let value = colon < 0 ? line.subarray(line.length) : line.subarray(colon + 1)
    if (value[0] === 32) value = value.subarray(1)
    switch (utf8.decode(field.subarray(0, 8))) {
      case "event":
        this.#name = utf8.decode(value)
        break
      case "data":
        this.#data.push(value) // the server's data is one line of JSON
    }
    return null
  }
}

/** Returns pieces as one. */
export function join(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
