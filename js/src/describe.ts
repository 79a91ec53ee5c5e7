// Descriptions of sandboxes and files, as the server gives them.
import { malformed } from "./errors.js"
import type { Members, Schemas } from "./json.js"
import { receivedID } from "./request.js"

/** A sandbox of the server. */
export interface SandboxInfo {
  readonly id: string
  readonly language: string
  readonly image: string
  readonly backend: string
  readonly created: Date
  /** When it ends. */
  readonly deadline: Date | null
  readonly paused: boolean
  readonly labels: Readonly<Record<string, string>>
}

/** A file of a sandbox. */
export interface FileInfo {
  readonly name: string
  readonly type: "file" | "directory" | "link" | "other"
  /** In bytes. */
  readonly size: number
  /** The permissions. */
  readonly mode: number
  readonly modified: Date
  /** Where a link leads to. */
  readonly link: string
}

export function parseSandbox(o: Members<Schemas["Sandbox"]>): SandboxInfo {
  const deadline = o.text("deadline")
  return {
    id: receivedID(o),
    language: o.text("language"),
    image: o.text("image"),
    backend: o.text("backend"),
    created: time(o.text("created")),
    deadline: deadline ? time(deadline) : null,
    paused: o.flag("paused"),
    labels: o.textMap("labels"),
  }
}

export function parseFile(o: Members<Schemas["FileEntry"]>): FileInfo {
  const mode = o.text("mode")
  if (!/^[0-7]{1,6}$/.test(mode)) throw malformed("the mode of a file is malformed")
  return {
    name: o.text("name"),
    type: o.oneOf("type", ["file", "directory", "link", "other"]),
    size: o.integer("size_bytes"),
    mode: parseInt(mode, 8),
    modified: time(o.text("modified")),
    link: o.text("link"),
  }
}

/** Returns a time of RFC 3339. */
function time(text: string): Date {
  const date = new Date(/^[0-9-]{10}T[0-9:]{8}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$/.test(text) ? text : NaN)
  if (Number.isNaN(date.getTime())) throw malformed("a time is malformed")
  return date
}
