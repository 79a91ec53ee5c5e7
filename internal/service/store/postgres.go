package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	// postgresConns bounds the connections of a process: a database has 100 for all by default.
	postgresConns = 10
	// postgresIdle is after how long a connection that nobody uses is closed.
	postgresIdle = 5 * time.Minute
	// connectTimeout is for a URL that sets none.
	connectTimeout = 10 * time.Second
	// migrationLock is the number of the lock under which one process changes the schema. It has no
	// meaning but that other programs choose others.
	migrationLock = 0x6c6c6d73616e6462
)

// deadlocked reports whether PostgreSQL has ended a transaction since it and another waited for each other. The other goes on, so that one of them always does.
func deadlocked(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == "40P01"
}

// openPostgres takes what the URL lacks from PostgreSQL's variables and files, such as PGPASSWORD
// and ~/.pgpass.
func openPostgres(ctx context.Context, source string) (*Store, error) {
	cfg, err := pgx.ParseConfig(source)
	if err != nil {
		// The error quotes the URL, and where that cannot be parsed, its password cannot be told apart.
		return nil, fmt.Errorf("the server's database: %w: the postgres:// URL cannot be used: check its form, sslmode and certificate files, and write @ : / ? # %% in the password as %%40 %%3A %%2F %%3F %%23 %%25", backend.ErrInvalid)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	db.SetConnMaxIdleTime(postgresIdle)
	name := fmt.Sprintf("%s at %s", cfg.Database, cfg.Host)
	types := strings.NewReplacer("{bytes}", "BYTEA", "{number}", "BIGINT GENERATED ALWAYS AS IDENTITY")
	return start(ctx, db, name, dialect{types, migrationLock}, postgresConns)
}
