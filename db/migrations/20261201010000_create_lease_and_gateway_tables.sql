-- Which admin does a periodic job: the one whose lease has not run out. Times are the database's own,
-- so that the clocks of admins do not matter. The term counts the holders.
CREATE TABLE job_lease (
    job TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    until_ms BIGINT NOT NULL,
    term BIGINT NOT NULL
);

-- The gateways that each admin knows, so that any admin can list all of them. Rows of an admin that is
-- gone are told by heard_ms, the database's time of its last word.
CREATE TABLE gateway_report (
    admin TEXT COLLATE "C" NOT NULL,
    connection BIGINT NOT NULL,
    heard_ms BIGINT NOT NULL,
    connected BOOLEAN NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (admin, connection)
);

CREATE INDEX gateway_report_heard ON gateway_report (heard_ms);
