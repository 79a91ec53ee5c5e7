// Node, Bun and Deno.
import { HTTPTransport } from "./http.js"
import type { Platform } from "./platform.js"

const platform: Platform = {
  connect: (endpoint) => new HTTPTransport(endpoint),
  // Loaded when it is needed: programs with a server elsewhere start no processes.
  startPrivate: async (args) => (await import("./private.js")).startPrivate(args),
}
export default platform
