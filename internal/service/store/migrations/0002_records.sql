-- What a server has to know of programs after it was killed; 1 is open.
CREATE TABLE records (
	project TEXT   NOT NULL,
	sandbox TEXT   NOT NULL,
	name    TEXT   NOT NULL,
	open    BIGINT NOT NULL,
	at      BIGINT NOT NULL,
	data    {bytes}  NOT NULL,
	PRIMARY KEY (project, sandbox, name)
);

CREATE INDEX records_times ON records (at);
