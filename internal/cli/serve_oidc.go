package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

// oidcFlags say with which issuer people log in to the console.
type oidcFlags struct {
	issuer, clientID, secretFile string
	scopes, grants               []string
}

func (f *oidcFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.issuer, "oidc-issuer", "", "`URL` of an OpenID Connect issuer with which people log in to the console")
	set.StringVar(&f.clientID, "oidc-client-id", "", "`ID` of the server at --oidc-issuer")
	set.StringVar(&f.secretFile, "oidc-client-secret-file", "", "`FILE` with the secret of --oidc-client-id (default: a public client)")
	set.StringArrayVar(&f.grants, "oidc-grant", nil, "`GRANT` for a login: PROJECT[:SCOPE,...]=CLAIM=VALUE (repeatable)")
	set.StringArrayVar(&f.scopes, "oidc-scope", nil, "ask --oidc-issuer for `SCOPE`, such as groups, beside openid and email (repeatable)")
}

// maxClientSecret bounds the file of a client's secret.
const maxClientSecret = 4 << 10

// config reads the flags; nil: nobody logs in with an issuer. Projects that they name are made.
func (f *oidcFlags) config(ctx context.Context, db *store.Store) (*httpapi.OIDC, error) {
	if f.issuer == "" {
		for _, flag := range []struct {
			name  string
			given bool
		}{{"client-id", f.clientID != ""}, {"client-secret-file", f.secretFile != ""}, {"grant", len(f.grants) > 0}, {"scope", len(f.scopes) > 0}} {
			if flag.given {
				return nil, fmt.Errorf("--oidc-%s needs an issuer: name it with --oidc-issuer", flag.name)
			}
		}
		return nil, nil
	}
	if f.clientID == "" {
		return nil, errors.New("--oidc-issuer needs --oidc-client-id: register the server with the issuer, which gives it one")
	}
	if len(f.grants) == 0 {
		return nil, errors.New("--oidc-issuer lets nobody in without a grant: say who may do what with --oidc-grant")
	}
	o := &httpapi.OIDC{Issuer: f.issuer, ClientID: f.clientID, Scopes: f.scopes}
	if f.secretFile != "" {
		var err error
		if o.ClientSecret, err = readClientSecret(f.secretFile); err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
	}
	for _, text := range f.grants {
		project, scopes, claim, value, err := parseGrant(text)
		if err != nil {
			return nil, fmt.Errorf("--oidc-grant %q: %w", text, err)
		}
		id, err := db.Project(ctx, project)
		if err != nil {
			return nil, fmt.Errorf("--oidc-grant %q: %w", text, err)
		}
		o.Grants = append(o.Grants, httpapi.OIDCGrant{Claim: claim, Value: value, Caller: httpapi.Caller{Project: id, Scopes: scopes}})
	}
	return o, nil
}

// parseGrant reads PROJECT[:SCOPE,...]=CLAIM=VALUE. Names of claims can be URLs, and values have any characters.
func parseGrant(text string) (project string, scopes []string, claim, value string, err error) {
	who, is, _ := strings.Cut(text, "=")
	claim, value, _ = strings.Cut(is, "=")
	project, list, some := strings.Cut(who, ":")
	if project == "" || claim == "" || value == "" || some && list == "" {
		return "", nil, "", "", errors.New("use PROJECT[:SCOPE,...]=CLAIM=VALUE, such as builds:read=groups=engineers")
	}
	if some {
		scopes = strings.Split(list, ",")
	}
	scopes, err = store.CompleteScopes(scopes)
	return project, scopes, claim, value, err
}

func readClientSecret(name string) (string, error) {
	text, err := configdir.ReadFile(name, maxClientSecret)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("%s is to have a secret, on one line", name)
	}
	return secret, nil
}
