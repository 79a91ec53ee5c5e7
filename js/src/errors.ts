// Errors of the package, and which one an answer of the server is.
import type { Cell, Result } from "./results.js"

/** The base class of all errors of this package. */
export class SandboxError extends Error {
  override name = "SandboxError"
}

/** The private server of this process could not be started. */
export class StartError extends SandboxError {
  override name = "StartError"
}

/** The server was not reached. Nothing was begun. */
export class ConnectError extends SandboxError {
  override name = "ConnectError"
}

/** The connection ended, or the answer cannot be used: what was asked for may have been done or not. */
export class LostError extends SandboxError {
  override name = "LostError"
  /** What the server tells of a run that it has lost itself. */
  readonly result: Result | Cell | null

  constructor(message: string, options?: ErrorOptions & { result?: Result | Cell }) {
    super(message, options)
    this.result = options?.result ?? null
  }
}

/** The sandbox or kernel was closed by this program. */
export class ClosedError extends SandboxError {
  override name = "ClosedError"
}

/** The server refused the request, or failed. */
export class APIError extends SandboxError {
  override name = "APIError"

  constructor(
    message: string,
    /** The HTTP status; 0 if the request was not sent. */
    readonly status = 0,
    /** Tells programs what went wrong. It is empty if something between this program and the server answered. */
    readonly code = "",
  ) {
    super(message)
  }
}

/** The server does not accept the API key. */
export class AuthenticationError extends APIError {
  override name = "AuthenticationError"
}

/** The server's operator does not allow this. */
export class NotAllowedError extends APIError {
  override name = "NotAllowedError"
}

/** The sandbox or kernel does not exist, or has ended. */
export class NotFoundError extends APIError {
  override name = "NotFoundError"
}

/** An argument is invalid. */
export class InvalidError extends APIError {
  override name = "InvalidError"
}

/** The server cannot do this, or cannot enforce a limit that was set. */
export class UnsupportedError extends InvalidError {
  override name = "UnsupportedError"
}

/** The request is too large. */
export class TooLargeError extends InvalidError {
  override name = "TooLargeError"
}

/** A library could not be installed. */
export class InstallError extends APIError {
  override name = "InstallError"
}

/** The server's policy refused the code or a library. */
export class RefusedError extends APIError {
  override name = "RefusedError"
}

/** The server is busy or does not serve at the moment. Nothing was begun; try again later. */
export class BusyError extends APIError {
  override name = "BusyError"
}

/** The project has all that it may have. Nothing was begun. */
export class QuotaError extends BusyError {
  override name = "QuotaError"
}

/** The sandbox is paused: resume it first. */
export class PausedError extends APIError {
  override name = "PausedError"
}

/** The file does not exist in the sandbox. */
export class SandboxFileNotFoundError extends APIError {
  override name = "SandboxFileNotFoundError"
}

/** The file exists in the sandbox already. */
export class SandboxFileExistsError extends APIError {
  override name = "SandboxFileExistsError"
}

/** The sandbox's user may not do this to the file. */
export class SandboxPermissionError extends APIError {
  override name = "SandboxPermissionError"
}

type Kind = new (message: string, status: number, code: string) => APIError

// A code that is not here has the error of its status.
const BY_CODE = new Map<string, Kind>([
  ["refused", RefusedError],
  ["install", InstallError],
  ["paused", PausedError],
  ["quota", QuotaError],
  ["stopping", BusyError],
  ["not_ready", BusyError],
  ["service_unavailable", BusyError],
  ["unsupported", UnsupportedError],
  ["not_enforced", UnsupportedError],
  ["file_not_found", SandboxFileNotFoundError],
  ["exists", SandboxFileExistsError],
  ["permission", SandboxPermissionError],
])
const BY_STATUS = new Map<number, Kind>([
  [400, InvalidError],
  [401, AuthenticationError],
  [403, NotAllowedError],
  [404, NotFoundError],
  [413, TooLargeError],
  [422, InvalidError],
  [429, BusyError],
])

/** Returns the error for an answer that is not a success. */
export function apiError(status: number, code: string, detail: string): APIError | LostError {
  const text = printable(detail) || `the server answers with status ${status}`
  if (code === "lost" || (code === "" && (status === 502 || status === 504))) return new LostError(text)
  // Without a code, something between has answered.
  const kind = code ? (BY_CODE.get(code) ?? BY_STATUS.get(status) ?? APIError) : APIError
  return new kind(text, status, code)
}

/** Returns the error for an answer that is not one of this API. */
export function malformed(what: string): LostError {
  return new LostError(`the server's answer cannot be used: ${what}`)
}

/** Returns a text of the server on one line and without control characters, so that it is safe to print. */
export function printable(text: string, most = 8192): string {
  const cut = text.length <= most ? text : `${text.slice(0, most)} ...`
  return cut.replace(/[\p{C}\p{Z}]+/gu, " ").trim()
}

/** Returns what an error of the system says. */
export function reason(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error))
  if (error instanceof AggregateError && error.errors.length > 0) return reason(error.errors[0])
  return printable(error.cause instanceof Error ? `${error.message}: ${reason(error.cause)}` : error.message)
}
