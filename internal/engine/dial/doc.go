// Package dial reaches a container engine's API: over a Unix socket, a Windows
// named pipe, TCP with and without TLS and through an HTTP proxy, or SSH.
//
// What an engine's own command reads to find its engine (environment, contexts,
// connections) is the business of that engine's backend; it ends in an [Endpoint].
// Every kind of connection is made by a single function that opens a byte stream, and
// requests and hijacked streams (attach, exec) take the same one. A failure of it is
// an [*Error], which says what is wrong and what to do.
package dial
