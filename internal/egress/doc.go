// Package egress is the host's side of a sandbox's network: it takes the connections
// that come out of a sandbox, speaks HTTP proxy and SOCKS5 with them, decides by a
// policy, resolves names, dials, and logs each attempt.
//
// A connection is decided on twice: before its name is looked up (may it be asked for?)
// and for each address it has (may that be dialled?). What is dialled is what was
// checked. Special addresses (loopback, private, link-local, reserved, this machine's
// own, metadata services) are refused in every mode unless a rule names the address or
// a range within the special one. In a tunnel that was allowed for its name, the first
// bytes of the client have to be for that name: see tunnel.
//
// Secrets are put into requests to their hosts and taken out of what these answer: see
// vault, substitute and redact. For TLS that needs an authority of the sandbox's own.
//
// Everything that is read here is hostile: what comes from the sandbox as well as what
// servers answer.
package egress
