package registries

import (
	"bytes"
	"fmt"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

// CA is where Trust puts certificates in a sandbox.
const CA = Dir + "/ca.pem"

// maxCA bounds a bundle of certificates: a system's has some 250 KiB.
const maxCA = 8 << 20

// Trust adds the certificates that this machine trusts as a file at CA, and reports
// whether there is one: what an image trusts need not be what the registries, or a
// company's proxy before them, are signed by. A configured bundle, the first that is
// not empty, comes before the one that the environment names, and that before the
// system's. A configured one that cannot be read is an error.
func Trust(r *language.Registries, ask language.Ask, configured ...string) (bool, error) {
	for _, name := range append(configured, ask.Env("SSL_CERT_FILE")) {
		if name == "" {
			continue
		}
		data, err := ask.File(name)
		if err != nil {
			return false, fmt.Errorf("%w: certificates to trust: %w", ErrConfiguration, err)
		}
		return plant(r, data)
	}
	data, found, err := trust.System(ask.File)
	if err != nil {
		return false, fmt.Errorf("%w: certificates to trust: %w", ErrConfiguration, err)
	}
	if !found {
		return false, nil
	}
	return plant(r, data)
}

func plant(r *language.Registries, data []byte) (bool, error) {
	switch {
	case len(data) > maxCA:
		return false, fmt.Errorf("%w: the certificates to trust are more than %d MiB", ErrConfiguration, maxCA>>20)
	case !bytes.Contains(data, []byte("-----BEGIN ")):
		return false, fmt.Errorf("%w: the file of certificates to trust has none in PEM form", ErrConfiguration)
	}
	r.Files = append(r.Files, language.File{Path: CA, Data: data, Mode: 0o644})
	return true, nil
}
