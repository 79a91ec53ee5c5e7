-- Times are microseconds since 1970 in UTC; 0 is none.
CREATE TABLE projects (
	id      TEXT   NOT NULL PRIMARY KEY,
	name    TEXT   NOT NULL UNIQUE,
	created BIGINT NOT NULL
);

CREATE TABLE keys (
	id      TEXT   NOT NULL PRIMARY KEY,
	project TEXT   NOT NULL REFERENCES projects (id),
	name    TEXT   NOT NULL,
	digest  TEXT   NOT NULL, -- SHA-256 of the secret, in hex
	scopes  TEXT   NOT NULL, -- separated by spaces
	created BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	revoked BIGINT NOT NULL
);

CREATE UNIQUE INDEX keys_names ON keys (project, name) WHERE revoked = 0;

-- What was done stays when keys and projects go: nothing here refers to them.
CREATE TABLE audit (
	number     {number} PRIMARY KEY,
	at         BIGINT NOT NULL,
	key_id     TEXT   NOT NULL,
	key_name   TEXT   NOT NULL,
	project    TEXT   NOT NULL,
	action     TEXT   NOT NULL,
	sandbox    TEXT   NOT NULL,
	outcome    TEXT   NOT NULL,
	detail     TEXT   NOT NULL,
	request_id TEXT   NOT NULL
);

CREATE INDEX audit_projects ON audit (project, number);
CREATE INDEX audit_sandboxes ON audit (sandbox, number);
