package store

import (
	"context"
	"database/sql"
	"errors"
)

const sealingSize = 32

// SealingSecret returns 32 random bytes, which are made when they are first asked for and stay until EndAllSessions: all who have the database open get the same.
func (s *Store) SealingSecret(ctx context.Context) (secret []byte, err error) {
	const find, add = "SELECT secret FROM sealing WHERE number = 1", "INSERT INTO sealing (number, secret) VALUES (1, $1) ON CONFLICT DO NOTHING"
	err = s.write(ctx, "make the secret of tokens", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, add, randomBytes(sealingSize)); err != nil { // waits for others that do the same
			return err
		}
		return tx.QueryRowContext(ctx, find).Scan(&secret)
	})
	if err == nil && len(secret) != sealingSize {
		err = s.failed("read the secret of tokens", errors.New("it is damaged: remove the row of the table sealing to have another made"))
	}
	return secret, err
}
