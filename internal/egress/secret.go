package egress

// A Secret is a value that the code never sees: it knows a placeholder, and requests
// to Hosts have the value put in its place on their way out.
type Secret struct {
	Name  string // of the environment variable that holds the placeholder
	Value string // at least [MinSecret] bytes, no control characters
	// Hosts are HOST[:PORT] or *.DOMAIN[:PORT], at least one; without a port any.
	Hosts []string
	// Body lets it be put into request bodies too. A host that stores what it is sent
	// may show it to others, so that this is for hosts that want it there.
	Body bool
}

// MinSecret is the least length of a secret's value: shorter ones could not be distinguished
// from other text in an answer.
const MinSecret = 8
