// Members of the server's JSON, each checked before it is used.
import { malformed } from "./errors.js"
import type { components } from "./schema.js"

/** The types of the server's API description. */
export type Schemas = components["schemas"]

/** The names of the members that have a type, or lack it. */
type Names<T, V> = { [K in keyof T]-?: [NonNullable<T[K]>] extends [V] ? K : never }[keyof T] & string
type Items<T, K extends keyof T> = NonNullable<T[K]> extends readonly (infer I)[] ? I & object : never

/** A JSON object of an answer, whose members are named as in the API description. */
export class Members<T extends object> {
  readonly #members: Record<string, unknown>

  constructor(value: unknown) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed("a JSON object was expected")
    this.#members = value as Record<string, unknown>
  }

  #get(name: string): unknown {
    return (Object.hasOwn(this.#members, name) ? this.#members[name] : null) ?? null
  }

  text(name: Names<T, string>): string {
    const value = this.#get(name) ?? ""
    if (typeof value !== "string") throw wrongType(name)
    return value
  }

  /** Returns a text that is one of some. */
  oneOf<K extends Names<T, string>>(name: K, all: readonly NonNullable<T[K]>[]): NonNullable<T[K]> {
    const text = this.text(name)
    const found = all.find((one) => one === text)
    if (found === undefined) throw malformed(`${name} is none that this version knows`)
    return found
  }

  flag(name: Names<T, boolean>): boolean {
    const value = this.#get(name) ?? false
    if (typeof value !== "boolean") throw wrongType(name)
    return value
  }

  integer(name: Names<T, number>): number {
    return this.integerOrNull(name) ?? 0
  }

  integerOrNull(name: Names<T, number>): number | null {
    const value = this.#get(name)
    if (value === null) return null
    if (!Number.isSafeInteger(value)) throw wrongType(name)
    return value as number
  }

  number(name: Names<T, number>): number {
    const value = this.#get(name) ?? 0
    if (!Number.isFinite(value)) throw wrongType(name) // JSON has 1e999, which is Infinity here
    return value as number
  }

  values(name: Names<T, readonly unknown[]> | Names<T, unknown>): readonly unknown[] {
    const value = this.#get(name) ?? []
    if (!Array.isArray(value)) throw wrongType(name)
    return value
  }

  texts(name: Names<T, readonly string[]>): readonly string[] {
    const values = this.values(name)
    if (!values.every((value) => typeof value === "string")) throw wrongType(name)
    return values
  }

  list<K extends Names<T, readonly object[]>>(name: K): Members<Items<T, K>>[] {
    return this.values(name).map((value) => new Members<Items<T, K>>(value))
  }

  object<K extends Names<T, object>>(name: K): Members<NonNullable<T[K]> & object> | null {
    const value = this.#get(name)
    return value === null ? null : new Members(value)
  }

  /** Returns texts by name. The object has no prototype: any name may come from the server. */
  textMap(name: Names<T, Record<string, string>>): Readonly<Record<string, string>> {
    const map: Record<string, string> = Object.create(null)
    const members = this.#get(name)
    if (members === null) return map
    for (const [key, value] of Object.entries(new Members<Record<string, unknown>>(members).#members)) {
      if (typeof value !== "string") throw wrongType(name)
      map[key] = value
    }
    return map
  }
}

function wrongType(name: string): Error {
  return malformed(`${name} is of the wrong type`)
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Decodes JSON of an answer. */
export function decode(data: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(data))
  } catch {
    throw malformed("it is not JSON in UTF-8")
  }
}

/** Decodes base64 of an answer. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  if (text.length % 4 !== 0) throw malformed("the content of an artifact is not base64")
  let binary: string
  try {
    binary = atob(text)
  } catch {
    throw malformed("the content of an artifact is not base64")
  }
  const data = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) data[i] = binary.charCodeAt(i)
  return data
}

/** Returns bytes in base64. */
export function encodeBase64(data: Uint8Array): string {
  const pieces: string[] = []
  for (let i = 0; i < data.length; i += 0x6000) pieces.push(btoa(String.fromCharCode(...data.subarray(i, i + 0x6000))))
  return pieces.join("")
}
