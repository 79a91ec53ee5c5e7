-- Servers that share the database, and which of them holds which sandbox.
CREATE TABLE replicas (
	id    TEXT   NOT NULL PRIMARY KEY,
	url   TEXT   NOT NULL,
	beats BIGINT NOT NULL
);

CREATE TABLE held (
	sandbox TEXT NOT NULL PRIMARY KEY,
	project TEXT NOT NULL,
	replica TEXT NOT NULL,
	network TEXT NOT NULL
);

CREATE INDEX held_replicas ON held (replica);
