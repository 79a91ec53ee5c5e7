package egress

import (
	"fmt"
	"strings"
)

// A Code names the reason why something was refused: the value of the header
// X-Llmsandbox-Refused.
type Code string

// The codes.
const (
	RefusedNoNetwork  Code = "no-network"       // the mode is none
	RefusedNotAllowed Code = "not-allowed"      // no rule names it
	RefusedMetadata   Code = "metadata"         // a cloud's metadata service
	RefusedAddress    Code = "special-address"  // loopback, private, reserved, this machine's
	RefusedHost       Code = "invalid-host"     // neither a name nor an address
	RefusedOtherName  Code = "other-name"       // asked for one name, then spoke to another
	RefusedHiddenName Code = "hidden-name"      // TLS that does not say or hides to whom
	RefusedRelay      Code = "relay"            // a proxy's language to what was reached
	RefusedProtocol   Code = "unknown-protocol" // not what this proxy speaks
	RefusedTooMany    Code = "too-many"         // more connections at once than allowed
	RefusedPolicy     Code = "policy-changed"   // it was open when the policy changed
	RefusedUnreadable Code = "unreadable"       // a secret's host answered in an encoding that hides it
)

// A Refusal is why the policy does not let a connection be.
type Refusal struct {
	Code Code
	what string // of RefusedAddress: "a private address"; of others what was seen
}

// Error is the reason, without what was asked for.
func (r *Refusal) Error() string {
	switch r.Code {
	case RefusedNoNetwork:
		return "this sandbox has no network"
	case RefusedNotAllowed:
		return "it is not on the list of what this sandbox may reach"
	case RefusedMetadata:
		return "it is a metadata service, which holds credentials of the machine"
	case RefusedAddress:
		return "it is or resolves to " + r.what
	case RefusedHost:
		return "it is neither a host name nor an address"
	case RefusedOtherName:
		return "the connection was asked for by one name and then used for another, " + r.what
	case RefusedHiddenName:
		return r.what
	case RefusedRelay:
		return "a host that was reached may not be used to reach others: " + r.what
	case RefusedProtocol:
		return r.what
	case RefusedTooMany:
		return "too many connections are open"
	case RefusedPolicy:
		return "what this sandbox may reach was changed"
	case RefusedUnreadable:
		return r.what
	}
	return string(r.Code)
}

// remedy is what can be done about it, for a reader who is a model or a person.
func (r *Refusal) remedy(host string, port uint16) string {
	switch r.Code {
	case RefusedNoNetwork:
		return "Work without a network, or ask the user to open the sandbox with one."
	case RefusedNotAllowed:
		return fmt.Sprintf("Trying again or another way does not help. If it is needed, ask the user to add the rule %s to the sandbox's network.", ruleFor(host, port))
	case RefusedMetadata, RefusedAddress:
		return "Trying again or another way does not help: such addresses are refused in every mode. If it is needed, ask the user to add a rule that names the address itself."
	case RefusedOtherName:
		return "Open a connection for each host."
	case RefusedTooMany:
		return "Close connections that are no longer used, or use fewer at once."
	}
	return ""
}

// ruleFor writes the rule that would allow host at port.
func ruleFor(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// clip bounds a hostile text that is shown in an error.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
