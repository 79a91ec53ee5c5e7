// A server that stands for a model: it speaks the Chat Completions API of OpenAI, and its turns are scripted.
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** A message of a request. */
interface Message {
  readonly role: string
  readonly content: unknown
}

/** A scripted model. */
export interface ScriptedModel {
  /** The variables with which programs use it. */
  readonly env: Record<string, string>
  /** What tools have answered, as the model has got it. */
  readonly answers: string[]
  close(): void
}

/** Starts a model that calls the first tool with each of some arguments in turn, and then says "Done." */
export async function scriptedModel(...calls: readonly object[]): Promise<ScriptedModel> {
  const answers: string[] = []
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = JSON.parse(Buffer.concat(pieces).toString()) as { messages: Message[]; tools: { function: { name: string } }[] }
    const told = body.messages.filter((message) => message.role === "tool").map((message) => message.content)
    answers.splice(0, answers.length, ...told.map(String))
    const call = calls[told.length]
    const message = call
      ? { role: "assistant", content: null, tool_calls: [{ id: `call-${told.length}`, type: "function", function: { name: body.tools[0]?.function.name, arguments: JSON.stringify(call) } }] }
      : { role: "assistant", content: "Done." }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const choices = [{ index: 0, message, finish_reason: call ? "tool_calls" : "stop" }]
    response.setHeader("Content-Type", "application/json")
    response.end(JSON.stringify({ id: `chat-${told.length}`, object: "chat.completion", created: 1, model: "scripted", choices, usage }))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { env: { OPENAI_BASE_URL: url, OPENAI_API_KEY: "scripted" }, answers, close: () => server.close() }
}
