// Package mcp tests `llmsandbox mcp` with clients that others wrote: the MCP Inspector's
// command, the official conformance suite and the Go SDK's client, set up as the docs say.
package mcp
