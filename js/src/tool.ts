// What tools of agent frameworks have in common: their words for the model, and a result as the model reads it.
import type { ProgramOptions } from "./options.js"
import type { Result } from "./results.js"

/** How a tool runs code. */
export interface CodeToolOptions extends Pick<ProgramOptions, "language" | "timeout"> {
  /** What the model is told about the tool, in place of the usual. */
  readonly description?: string | undefined
  /** The most characters of output that the model gets, of stdout and stderr each; 20,000 by default. */
  readonly maxOutput?: number | undefined
}

/** Returns what the model is told about the tool. */
export function toolDescription(options: CodeToolOptions): string {
  return (
    options.description ??
    `Run code in ${options.language ?? "the sandbox's language"} as a program of its own. Print what you want to see. Files in the working directory ` +
      "stay between calls, and variables do not. There may be no network."
  )
}

/** The arguments of the tool. */
export const TOOL_SCHEMA = {
  type: "object" as const,
  properties: { code: { type: "string" as const, description: "the whole program" } },
  required: ["code" as const],
  additionalProperties: false as const,
}

/** Returns a result as the model reads it. Its text comes from code, so the model must not trust it either. */
export function toolAnswer(result: Result, most = 20_000): string {
  const lines = [`status: ${result.status}`]
  if (result.exitCode) lines.push(`exit code: ${result.exitCode}`)
  if (result.reason) lines.push(`reason: ${result.reason}`)
  for (const [name, text, truncated] of [
    ["stdout", result.stdout, result.stdoutTruncated],
    ["stderr", result.stderr, result.stderrTruncated],
  ] as const) {
    const shown = shorten(text, most)
    if (shown) lines.push(`${name}${truncated || shown !== text ? " (shortened)" : ""}:`, shown)
  }
  for (const { rule, reason } of result.findings) lines.push(`policy: ${rule}: ${reason}`)
  for (const { kind, subject } of result.hints) lines.push(`hint: ${kind} ${subject}`)
  if (result.artifacts.length > 0) lines.push(`artifacts: ${result.artifacts.map((artifact) => artifact.name).join(", ")}`)
  return lines.join("\n")
}

/** Returns the beginning and the end of a text: errors are at its end. */
function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const half = Math.floor(most / 2)
  return `${text.slice(0, half).toWellFormed()}\n[...]\n${text.slice(-half).toWellFormed()}`
}
