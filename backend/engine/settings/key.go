package settings

// KeyInfo describes one key of [Settings.Set] and [FromMap].
type KeyInfo struct {
	Name    string // docker-py's keyword name
	Group   string // "resources", "security", "network", "files" or "process"
	Type    string // "size", "integer", "boolean", "text", "list" or "map"
	Meaning string // one line, with unit and default
	Example string // a value as Set takes it
}

// An option is a key and how its value gets into the Settings.
type option struct {
	KeyInfo
	codec
	// secret values are not repeated in errors.
	secret bool
}

// Keys returns every key there is, grouped, in the order of documentation.
func Keys() []KeyInfo {
	keys := make([]KeyInfo, 0, len(options))
	for _, o := range options {
		keys = append(keys, o.KeyInfo)
	}
	return keys
}

// options is every key, in the order of documentation.
var options = concat(resourceOptions, securityOptions, networkOptions, fileOptions, processOptions)

var optionByName = func() map[string]*option {
	byName := make(map[string]*option, len(options))
	for i := range options {
		byName[options[i].Name] = &options[i]
	}
	return byName
}()

func concat(groups ...[]option) []option {
	names := [...]string{"resources", "security", "network", "files", "process"}
	var all []option
	for i, group := range groups {
		for _, o := range group {
			o.Group = names[i]
			all = append(all, o)
		}
	}
	return all
}
