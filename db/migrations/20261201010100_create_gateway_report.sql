-- The admins that run, and the gateways that are or were connected to one of them. `seen_ms` and
-- `written_ms` are the database's time, so that admins whose clocks differ agree on who is gone; the
-- other times are for people and come from the admin that wrote them.
CREATE TABLE admin_process (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    started_ms BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL
);

-- `session` is the gateway's own count of its sessions: what an admin writes late about a session that
-- the gateway has left does not replace what the next one wrote.
CREATE TABLE gateway_report (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    session BIGINT NOT NULL,
    admin_id TEXT COLLATE "C" NOT NULL,
    admin_name TEXT COLLATE "C" NOT NULL,
    namespace_id TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C" NOT NULL,
    port INTEGER,
    kind TEXT COLLATE "C" NOT NULL,
    transport TEXT COLLATE "C" NOT NULL,
    connected BOOLEAN NOT NULL,
    since_ms BIGINT NOT NULL,
    epoch TEXT COLLATE "C",
    version BIGINT,
    in_force_ms BIGINT,
    heard_ms BIGINT NOT NULL,
    info TEXT,
    faults TEXT NOT NULL,
    written_ms BIGINT NOT NULL
);

CREATE INDEX gateway_report_list ON gateway_report (namespace_id, host, port, id);
