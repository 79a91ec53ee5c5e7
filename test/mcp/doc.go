// Package mcp tests `llmsandbox mcp` and the tools of `llmsandbox serve` with clients that others wrote: the MCP Inspector's
// command, the official conformance suite and the Go SDK's client, set up as the docs say.
package mcp
