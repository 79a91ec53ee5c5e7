package cli

// A given is a flag by its name, and whether it was given.
type given struct {
	name string
	set  bool
}

// named is the names of the flags that were given.
func named(flags []given) []string {
	var names []string
	for _, f := range flags {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}
