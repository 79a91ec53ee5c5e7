-- What projects have used, by the hour in which it was seen. Hours are seconds since 1970 in UTC, and times microseconds.
CREATE TABLE usage (
	project  TEXT   NOT NULL,
	hour     BIGINT NOT NULL,
	cpu      BIGINT NOT NULL,
	sent     BIGINT NOT NULL, -- bytes
	received BIGINT NOT NULL,
	runs     BIGINT NOT NULL,
	lived    BIGINT NOT NULL, -- of all sandboxes together
	PRIMARY KEY (project, hour)
);

CREATE INDEX usage_hours ON usage (hour);

-- Up to where the counters of sandboxes are in it.
CREATE TABLE counted (
	project  TEXT   NOT NULL,
	sandbox  TEXT   NOT NULL,
	at       BIGINT NOT NULL,
	cpu      BIGINT NOT NULL,
	sent     BIGINT NOT NULL,
	received BIGINT NOT NULL,
	PRIMARY KEY (project, sandbox)
);

CREATE INDEX counted_times ON counted (at);
