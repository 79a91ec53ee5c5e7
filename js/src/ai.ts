/**
 * A tool of the Vercel AI SDK that runs code in a sandbox.
 *
 * @module
 */
import { type Tool, jsonSchema, tool } from "ai"
import type { Sandbox } from "./sandbox.js"
import { type CodeToolOptions, TOOL_SCHEMA, toolAnswer, toolDescription } from "./tool.js"

export type { CodeToolOptions } from "./tool.js"

/**
 * Returns a tool with which a model runs code in a sandbox, which you create and close. Code that fails is an answer that says so; errors
 * are the sandbox's own. What ends the model's turn ends the run.
 */
export function codeTool(sandbox: Sandbox, options: CodeToolOptions = {}): Tool<{ code: string }, string> {
  const { language, timeout, maxOutput } = options
  return tool({
    description: toolDescription(options),
    inputSchema: jsonSchema<{ code: string }>(TOOL_SCHEMA, { validate }),
    execute: async ({ code }, { abortSignal }): Promise<string> =>
      toolAnswer(await sandbox.run(code, { language, timeout, signal: abortSignal }), maxOutput),
  })
}

/** Checks what a model has made. The SDK tells it of the error. */
function validate(value: unknown): { success: true; value: { code: string } } | { success: false; error: Error } {
  const code = (value as { code?: unknown } | null)?.code
  return typeof code === "string" ? { success: true, value: { code } } : { success: false, error: new TypeError("code: must be a text") }
}
