-- Conventions, for every table: ids are TEXT and compare by bytes (COLLATE "C", which the SQLite
-- connections register); so do all texts that are searched, sorted or unique, which makes both
-- stores answer alike. Times are milliseconds since 1970-01-01 UTC. JSON is TEXT.
-- Texts have no length here: the limits that matter are checked before a row is written.

-- Facts about this database: its epoch, and whether it was seeded.
CREATE TABLE install (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Node numbers of the id generator. All exist from the start, so that taking one is an update of
-- one row, which two admins cannot both do.
CREATE TABLE node_lease (
    node BIGINT NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    expires_ms BIGINT NOT NULL
);

INSERT INTO node_lease (node, owner, expires_ms)
WITH RECURSIVE numbers (n) AS (
    SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < 1023
)
SELECT n, '', 0 FROM numbers;

-- The version in force per namespace; '' counts what belongs to no namespace. A row outlives its
-- namespace, so that an id that is used again goes on counting. Change sets up to the floor are
-- history only and no longer sent.
CREATE TABLE config_version (
    namespace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    dispatch_floor BIGINT NOT NULL DEFAULT 0
);

-- Outbox and history: one row per changed object.
CREATE TABLE config_change (
    namespace_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    position BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    object_id TEXT COLLATE "C" NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    event TEXT COLLATE "C" NOT NULL,
    before_json TEXT,
    after_json TEXT,
    actor TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (namespace_id, version, position)
);

CREATE INDEX config_change_object ON config_change (kind, object_id);
CREATE INDEX config_change_at ON config_change (at_ms);

-- `namespace_id` is the id that everything else uses; `id` only keys the row.
CREATE TABLE namespace (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    namespace_id TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT COLLATE "C" NOT NULL,
    description TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

-- The catalogue of plugins. A template works in a namespace only through namespace_plugin_rel.
CREATE TABLE plugin (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    config TEXT,
    role TEXT COLLATE "C" NOT NULL,
    sort INTEGER,
    enabled BOOLEAN NOT NULL,
    plugin_jar TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE TABLE namespace_plugin_rel (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespace (namespace_id),
    plugin_id TEXT COLLATE "C" NOT NULL REFERENCES plugin (id),
    config TEXT,
    sort INTEGER,
    enabled BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (namespace_id, plugin_id)
);

CREATE INDEX namespace_plugin_rel_plugin ON namespace_plugin_rel (plugin_id);

-- Form fields of plugins. data_type 1 number, 2 text, 3 choice; type 1 selector, 2 rule, 3 plugin.
CREATE TABLE plugin_handle (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    plugin_id TEXT COLLATE "C" NOT NULL REFERENCES plugin (id) ON DELETE CASCADE,
    field TEXT COLLATE "C" NOT NULL,
    label TEXT,
    data_type INTEGER NOT NULL,
    type INTEGER NOT NULL,
    sort INTEGER NOT NULL,
    ext_obj TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (plugin_id, field, type)
);

-- Choices of form fields, and a few switches of the console.
CREATE TABLE shenyu_dict (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    type TEXT COLLATE "C" NOT NULL,
    dict_code TEXT COLLATE "C" NOT NULL,
    dict_name TEXT COLLATE "C" NOT NULL,
    dict_value TEXT,
    description TEXT,
    sort INTEGER NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (type, dict_code, dict_name)
);
