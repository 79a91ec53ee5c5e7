-- The secret that tokens are sealed with, in its only row.
CREATE TABLE sealing (
	number BIGINT NOT NULL PRIMARY KEY CHECK (number = 1),
	secret {bytes} NOT NULL
);
