-- Who has said that it is alive: gateways, and instances of services. instance_state 0 deleted, 1 online,
-- 2 offline. `beat_ms` and `at_ms` are the database's time.
CREATE TABLE instance_info (
    namespace_id TEXT COLLATE "C" NOT NULL,
    instance_ip TEXT COLLATE "C" NOT NULL,
    instance_port TEXT COLLATE "C" NOT NULL,
    instance_type TEXT COLLATE "C" NOT NULL,
    instance_info TEXT NOT NULL,
    instance_state INTEGER NOT NULL,
    beat_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (namespace_id, instance_ip, instance_port, instance_type)
);

CREATE INDEX instance_info_beat ON instance_info (beat_ms);

-- How many were in each state; the newest twenty are kept.
CREATE TABLE instance_trend (
    at_ms BIGINT NOT NULL PRIMARY KEY,
    deleted BIGINT NOT NULL,
    online BIGINT NOT NULL,
    offline BIGINT NOT NULL
);

-- Instances that said good-bye a moment ago, to whichever admin: their heartbeats count for nothing.
CREATE TABLE instance_farewell (
    namespace_id TEXT COLLATE "C" NOT NULL,
    plugin_name TEXT COLLATE "C" NOT NULL,
    selector_name TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (namespace_id, plugin_name, selector_name, url)
);
