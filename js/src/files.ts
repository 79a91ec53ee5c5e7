// Files of a sandbox.
import { type FileInfo, parseFile } from "./describe.js"
import { InvalidError } from "./errors.js"
import type { Schemas } from "./json.js"
import type { Abortable } from "./options.js"
import { encodeText } from "./request.js"
import type { Session } from "./session.js"

/** The files of a sandbox. A relative path is below its working directory. */
export class Files {
  readonly #session: () => Session

  /** @internal */
  constructor(session: () => Session) {
    this.#session = session
  }

  /** Returns a file's content, at most 1 GiB. */
  async read(path: string, options: Abortable = {}): Promise<Uint8Array<ArrayBuffer>> {
    return this.#session().content({ method: "GET", path: "/files", query: { path }, signal: options.signal })
  }

  /** Returns the content of a file in UTF-8. */
  async readText(path: string, options: Abortable = {}): Promise<string> {
    const data = await this.read(path, options)
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data)
    } catch {
      throw new InvalidError(`${JSON.stringify(path)} is not text in UTF-8: use files.read`)
    }
  }

  /** Writes a file, in UTF-8 if the content is text. Directories that are missing are made. */
  async write(path: string, content: string | Uint8Array, options: Abortable = {}): Promise<void> {
    // What lies in shared memory could change while it is sent.
    const data = typeof content === "string" ? encodeText(content) : content.buffer instanceof ArrayBuffer ? (content as Uint8Array<ArrayBuffer>) : content.slice()
    await this.#session().empty({ method: "PUT", path: "/files", query: { path }, content: data, signal: options.signal })
  }

  /** Lists a directory, sorted by name. */
  async list(path = "."): Promise<FileInfo[]> {
    const found = await this.#session().json<Schemas["Files"]>({ method: "GET", path: "/files/list", query: { path } })
    return found.list("entries").map(parseFile)
  }

  /** Describes a file. Links are not followed. */
  async stat(path: string): Promise<FileInfo> {
    return parseFile(await this.#session().json<Schemas["FileEntry"]>({ method: "GET", path: "/files/stat", query: { path } }))
  }

  /** Makes a directory and those above it that are missing. */
  async mkdir(path: string): Promise<void> {
    await this.#session().empty({ method: "POST", path: "/files/mkdir", query: { path } })
  }

  /** Removes a file, or a directory with all that is in it. */
  async remove(path: string): Promise<void> {
    await this.#session().empty({ method: "DELETE", path: "/files", query: { path } })
  }

  /** Renames a file or directory. A file that has that name is replaced. */
  async rename(path: string, to: string): Promise<void> {
    await this.#session().empty({ method: "POST", path: "/files/rename", query: { path, to } })
  }
}
