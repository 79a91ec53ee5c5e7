/**
 * A tool of LangChain.js that runs code in a sandbox.
 *
 * @module
 */
import { type DynamicStructuredTool, tool } from "@langchain/core/tools"
import type { Sandbox } from "./sandbox.js"
import { type CodeToolOptions, TOOL_SCHEMA, toolAnswer, toolDescription } from "./tool.js"

export type { CodeToolOptions } from "./tool.js"

/**
 * Returns a tool with which a model runs code in a sandbox, which you create and close. Code that fails is an answer that says so; errors
 * are the sandbox's own. What ends the agent ends the run.
 */
export function codeTool(sandbox: Sandbox, options: CodeToolOptions & { readonly name?: string } = {}): DynamicStructuredTool {
  const { language, timeout, maxOutput } = options
  const run = async (input: unknown, config?: { signal?: AbortSignal }): Promise<string> =>
    toolAnswer(await sandbox.run((input as { code: string }).code, { language, timeout, signal: config?.signal }), maxOutput)
  return tool(run, { name: options.name ?? "run_code", description: toolDescription(options), schema: TOOL_SCHEMA }) as unknown as DynamicStructuredTool
}
