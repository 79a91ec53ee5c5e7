-- Sessions of browsers. Those of persons have what they may do; those of keys what their key may.
CREATE TABLE sessions (
	id      TEXT   NOT NULL PRIMARY KEY, -- SHA-256 of what the browser bears, in hex
	project TEXT   NOT NULL,
	key_id  TEXT   NOT NULL,
	name    TEXT   NOT NULL,
	scopes  TEXT   NOT NULL, -- separated by spaces
	issuer  TEXT   NOT NULL, -- empty: it is of a key
	begun   BIGINT NOT NULL,
	used    BIGINT NOT NULL,
	ends    BIGINT NOT NULL
);

CREATE INDEX sessions_projects ON sessions (project);
