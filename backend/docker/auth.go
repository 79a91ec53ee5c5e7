package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/credentials"
	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker-credential-helpers/client"
	helper "github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
)

const (
	// authEnv holds credentials as config.json does, and goes over it.
	authEnv = "DOCKER_AUTH_CONFIG"
	// tokenUser is the user name by which a helper says that its secret is a token.
	tokenUser = "<token>"
)

// RegistryAuth returns the value of the X-Registry-Auth header with which an engine
// may pull ref: the credentials that docker login has stored for ref's registry, or
// "" when there are none. A credential helper that fails is an error with its message.
func RegistryAuth(ctx context.Context, ref string) (string, error) {
	return ClientOptions{}.registryAuth(ctx, ref)
}

// registryAuth is RegistryAuth with the configuration that o names.
func (o ClientOptions) registryAuth(ctx context.Context, ref string) (string, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("image reference %q: %w", ref, err)
	}
	key := parsed.Context().RegistryStr()
	if key == name.DefaultRegistry {
		key = authn.DefaultAuthKey
	}
	dir, err := o.configDir()
	if err != nil {
		return "", err
	}
	config, err := loadConfig(dir)
	if err != nil {
		return "", err
	}
	found, err := credentialsFor(ctx, config, key)
	if err != nil {
		return "", fmt.Errorf("credentials of the registry %s: %w", parsed.Context().RegistryStr(), err)
	}
	if found == (types.AuthConfig{}) {
		return "", nil
	}
	value, err := authconfig.Encode(registry.AuthConfig{
		Username: found.Username, Password: found.Password, Auth: found.Auth,
		ServerAddress: key, IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
	})
	if err != nil {
		return "", fmt.Errorf("credentials of the registry %s: %w", parsed.Context().RegistryStr(), err)
	}
	return value, nil
}

// credentialsFor looks for credentials in the environment, the helper program for
// that registry, the helper for all, and the file itself.
func credentialsFor(ctx context.Context, c *configfile.ConfigFile, key string) (types.AuthConfig, error) {
	if found, ok, err := fromAuthEnv(key); ok || err != nil {
		return found, err
	}
	program := c.CredentialsStore
	if !c.ContainsAuth() {
		program = credentials.DetectDefaultStore(program)
	}
	if special, ok := c.CredentialHelpers[key]; ok {
		program = special
	}
	if program != "" {
		return fromHelper(ctx, "docker-credential-"+program, key)
	}
	found, err := credentials.NewFileStore(c).Get(key)
	// The file's keys have forms that are not the registry's name; what they are
	// says nothing of whether there are credentials.
	found.ServerAddress = ""
	return found, err
}

// fromAuthEnv returns the credentials in DOCKER_AUTH_CONFIG.
func fromAuthEnv(key string) (_ types.AuthConfig, ok bool, _ error) {
	value := os.Getenv(authEnv)
	if value == "" {
		return types.AuthConfig{}, false, nil
	}
	var env struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	if err := json.Unmarshal([]byte(value), &env); err != nil {
		return types.AuthConfig{}, false, fmt.Errorf(`%s is not JSON of the form {"auths":{"REGISTRY":{"auth":"..."}}}`, authEnv)
	}
	entry, ok := env.Auths[key]
	if !ok {
		return types.AuthConfig{}, false, nil
	}
	plain, err := base64.StdEncoding.DecodeString(entry.Auth)
	user, password, cut := strings.Cut(string(plain), ":")
	if err != nil || !cut || user == "" {
		return types.AuthConfig{}, false, fmt.Errorf("%s: the auth of %s is not USER:PASSWORD in base64", authEnv, key)
	}
	return types.AuthConfig{Username: user, Password: strings.Trim(password, "\x00")}, true, nil
}

// fromHelper asks a credential helper program.
func fromHelper(ctx context.Context, program, key string) (types.AuthConfig, error) {
	if _, err := exec.LookPath(program); err != nil {
		return types.AuthConfig{}, fmt.Errorf("config.json names the credential helper %s: %w; install it, or take it out of credHelpers and credsStore", program, err)
	}
	creds, err := client.Get(helperProgram(ctx, program), key)
	switch {
	case helper.IsErrCredentialsNotFound(err):
		return types.AuthConfig{}, nil
	case ctx.Err() != nil:
		return types.AuthConfig{}, fmt.Errorf("the credential helper %s did not answer: %w", program, ctx.Err())
	case err != nil:
		return types.AuthConfig{}, fmt.Errorf("the credential helper %s failed: %w; run docker login, or repair the helper", program, err)
	case creds.Username == "" && creds.Secret == "":
		return types.AuthConfig{}, errors.New("the credential helper " + program + " answered without a user and a secret; run docker login again")
	case creds.Username == tokenUser:
		return types.AuthConfig{IdentityToken: creds.Secret}, nil
	}
	return types.AuthConfig{Username: creds.Username, Password: creds.Secret}, nil
}
