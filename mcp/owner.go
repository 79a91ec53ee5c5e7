package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// An owner is whom a session belongs to: an authenticated user, whatever connection it
// comes by, and else the connection itself.
type owner struct {
	user       string
	connection *sdk.ServerSession
}

func ownerOf(req *sdk.CallToolRequest) owner {
	if req.Extra != nil && req.Extra.TokenInfo != nil && req.Extra.TokenInfo.UserID != "" {
		return owner{user: req.Extra.TokenInfo.UserID}
	}
	return owner{connection: req.Session}
}
