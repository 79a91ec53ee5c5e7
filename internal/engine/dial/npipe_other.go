//go:build !windows

package dial

func (e Endpoint) npipe(string) (opener, string, error) {
	return nil, "", e.badHost("named pipes exist on Windows only")
}
