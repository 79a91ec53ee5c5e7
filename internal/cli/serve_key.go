package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/e2b"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

const (
	// serverDir is the default directory of a server, in that of what outlasts a restart of the machine.
	serverDir = "server"
	// serverDatabase is the file of the database in the directory of a server.
	serverDatabase = "server.db"
	// serverImages is the directory of projects' images there.
	serverImages = "images"
)

// serverState says where a server keeps what outlives it. The command that serves and those for its keys
// have the same flags, and so find the same database.
type serverState struct {
	State    string // a directory; empty: the default
	Database string // the URL of a PostgreSQL database; empty: a file of the directory
}

func (s *serverState) register(set *pflag.FlagSet) {
	set.StringVar(&s.State, "state", "", "keep the server's data in `DIR` (default: llmsandbox/server in /var/lib or ~/.local/state)")
	set.StringVar(&s.Database, "database", "", "`URL` of a PostgreSQL database in place of the file in --state")
}

// dir returns the server's directory, which it makes for this user alone if it is not there.
func (s *serverState) dir() (string, error) {
	dir := s.State
	if dir == "" {
		state, err := statedir.Lasting()
		if err != nil {
			return "", fmt.Errorf("the server's directory: %w: name another with --state", err)
		}
		dir = filepath.Join(state, serverDir)
	}
	if err := layerstore.MakePrivate(dir); err != nil {
		return "", fmt.Errorf("the server's directory: %w: name another with --state", err)
	}
	return dir, nil
}

// open opens the server's database. The caller closes it.
func (s *serverState) open(ctx context.Context) (*store.Store, error) {
	if s.Database != "" {
		if !strings.HasPrefix(s.Database, "postgres://") && !strings.HasPrefix(s.Database, "postgresql://") {
			return nil, errors.New("--database: use a URL that begins with postgres://; a directory for a file is named by --state") // it may have a password
		}
		if s.State != "" {
			return nil, errors.New("--state and --database exclude each other: leave one of them out")
		}
		return store.Open(ctx, s.Database)
	}
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, filepath.Join(dir, serverDatabase))
}

// with calls use with the open database.
func (s *serverState) with(ctx context.Context, use func(*store.Store) error) error {
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

func newServeKeyCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "key",
		Aliases: []string{"keys"},
		Short:   "Create, list and revoke API keys of a server",
		Long: `Create, list and revoke API keys of a server, which may be running. Use the --state or
--database of the server. A URL with a password is safer in LLMSANDBOX_DATABASE than on the command
line, which other users of the machine can see.`,
		Example: `  llmsandbox serve key create ci --expires 90d
  llmsandbox serve key list
  llmsandbox serve key revoke ci`,
	}, newServeKeyCreateCommand(), newServeKeyListCommand(), newServeKeyRevokeCommand())
}

func newServeKeyCreateCommand() *cobra.Command {
	var at serverState
	var project, expires string
	var scopes []string
	var forE2B bool
	cmd := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Create an API key, and print its secret once",
		Long: `Create an API key, and print its secret on standard output. The server keeps no copy of the
secret. Keys of one project see the same sandboxes; a project is made when a key first names
it. Scopes are:

  read    look at sandboxes and their files
  write   create, use and remove sandboxes
  audit   read the project's audit log
  admin   list, create and revoke the project's keys over HTTP and in the
          console, with no more scopes and no later end than its own`,
		Example: `  llmsandbox serve key create ci --expires 90d
  llmsandbox serve key create dashboard --project web --scope read > key`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n := database.NewKey{Name: args[0], Project: project, Scopes: scopes}
			lifetime, err := durationFlag("expires", expires)
			if err != nil {
				return err
			}
			if lifetime != 0 {
				n.Expires = time.Now().Add(lifetime)
			}
			return at.with(cmd.Context(), func(db *store.Store) error { return createKey(cmd.Context(), db, n, forE2B) })
		},
	}
	set := cmd.Flags()
	at.register(set)
	set.StringVar(&project, "project", store.DefaultProject, "`PROJECT` that the key belongs to")
	set.StringArrayVar(&scopes, "scope", nil, "`SCOPE` of the key: read, write, audit or admin (repeatable; default: read and write)")
	set.BoolVar(&forE2B, "e2b", false, "print the key in the form that the SDKs of E2B take")
	set.StringVar(&expires, "expires", "", "`DURATION` after which the key ends, such as 90d (default: never)")
	return cmd
}

// createKey makes a key and prints its secret. A key whose secret nobody gets to see is revoked.
func createKey(ctx context.Context, db *store.Store, n database.NewKey, forE2B bool) error {
	key, secret, err := db.CreateKey(ctx, n)
	if err != nil {
		return err
	}
	if forE2B {
		secret = e2b.Key(secret)
	}
	if _, err := fmt.Println(secret); err != nil {
		_, undo := db.RevokeKey(context.WithoutCancel(ctx), key.ID)
		return errors.Join(fmt.Errorf("print the secret of the new key: %w", err), undo)
	}
	fmt.Fprintf(stderr, "llmsandbox: created key %s of project %s with id %s; its secret is not shown again\n", key.Name, key.Project, key.ID)
	return nil
}

func newServeKeyListCommand() *cobra.Command {
	var at serverState
	cmd := newList(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List API keys, without their secrets",
		Example: `  llmsandbox serve key list
  llmsandbox serve key list --json`,
	}, "IDs", func(ctx context.Context) (keys []database.Key, err error) {
		err = at.with(ctx, func(db *store.Store) error {
			keys, err = db.Keys(ctx)
			return err
		})
		return keys, err
	}, func(k database.Key) string { return k.ID }, printKeys)
	at.register(cmd.Flags())
	return cmd
}

func printKeys(keys []database.Key) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "ID\tNAME\tPROJECT\tSCOPES\tCREATED\tEXPIRES\tSTATUS")
	for _, k := range keys {
		expires := "never"
		if !k.Expires.IsZero() {
			expires = k.Expires.Local().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Project, strings.Join(k.Scopes, " "), k.Created.Local().Format(time.RFC3339), expires, keyStatus(k, time.Now()))
	}
	return w.Flush()
}

// keyStatus is what the table says of whether a key can be used.
func keyStatus(k database.Key, now time.Time) string {
	switch {
	case k.Usable(now):
		return "active"
	case k.Revoked.IsZero():
		return "expired"
	}
	return "revoked"
}

func newServeKeyRevokeCommand() *cobra.Command {
	var at serverState
	cmd := &cobra.Command{
		Use:   "revoke [flags] NAME|ID",
		Short: "Revoke an API key",
		Long: `Revoke an API key. From then on, servers that run refuse requests with it. A key stays in the
list, and cannot be used again; its name can.`,
		Example: `  llmsandbox serve key revoke ci`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd.Context(), func(db *store.Store) error {
				key, err := db.RevokeKey(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				fmt.Printf("Key %s of project %s with id %s is revoked.\n", key.Name, key.Project, key.ID)
				return nil
			})
		},
	}
	at.register(cmd.Flags())
	return cmd
}
