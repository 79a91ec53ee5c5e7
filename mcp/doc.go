// Package mcp is a Model Context Protocol server whose tools run code in sandboxes.
//
// What a sandbox may do is the operator's to say, in [Config]: its limits, network, image
// and policy. Arguments of a tool can ask for less and never for more. Everything that
// comes from inside a sandbox is data: text is stripped of control sequences and bounded,
// pictures are counted and weighed.
package mcp
