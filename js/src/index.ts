/**
 * Run code of language models without trusting it.
 *
 *     import { run } from "llmsandbox"
 *
 *     console.log((await run("print(6 * 7)")).stdout)
 *
 * Code runs in a private server of this process, unless LLMSANDBOX_URL names another one. `Client` has more on that.
 *
 * @module
 */
export { Client, type ClientOptions, run } from "./client.js"
export type { FileInfo, SandboxInfo } from "./describe.js"
export {
  APIError, AuthenticationError, BusyError, ClosedError, ConnectError, InstallError, InvalidError, LostError, NotAllowedError, NotFoundError,
  PausedError, QuotaError, RefusedError, SandboxError, SandboxFileExistsError, SandboxFileNotFoundError, SandboxPermissionError, StartError,
  TooLargeError, UnsupportedError,
} from "./errors.js"
export type { Files } from "./files.js"
export type { CellOptions, Completion, Kernel, Variable } from "./kernel.js"
export type { Abortable, ExecOptions, ProgramOptions, RunOptions, SandboxOptions, Secret } from "./options.js"
export type { NetworkAccess } from "./request.js"
export type {
  Artifact, Axes, Axis, Cell, CellError, Chart, ChartValue, Finding, Form, Hint, NetworkAttempt, Result, RunEvent, Series, Status,
} from "./results.js"
export { type KernelOptions, Sandbox } from "./sandbox.js"
