-- What people configure. Rows that belong to another go with it; the references also keep a
-- selector from being deleted while a rule is being added to it.

CREATE TABLE selector (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    plugin_id TEXT COLLATE "C" NOT NULL REFERENCES plugin (id),
    selector_name TEXT COLLATE "C" NOT NULL,
    match_mode INTEGER NOT NULL,
    selector_type INTEGER NOT NULL,
    sort_code INTEGER NOT NULL,
    handle TEXT,
    enabled BOOLEAN NOT NULL,
    loged BOOLEAN NOT NULL,
    continued BOOLEAN NOT NULL,
    match_restful BOOLEAN NOT NULL,
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespace (namespace_id),
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX selector_list ON selector (namespace_id, plugin_id, sort_code, id);
CREATE INDEX selector_plugin ON selector (plugin_id);

CREATE TABLE selector_condition (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    selector_id TEXT COLLATE "C" NOT NULL REFERENCES selector (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    param_type TEXT NOT NULL,
    operator TEXT NOT NULL,
    param_name TEXT,
    param_value TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX selector_condition_selector ON selector_condition (selector_id, position);

CREATE TABLE rule (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    selector_id TEXT COLLATE "C" NOT NULL REFERENCES selector (id) ON DELETE CASCADE,
    match_mode INTEGER NOT NULL,
    rule_name TEXT COLLATE "C" NOT NULL,
    enabled BOOLEAN NOT NULL,
    loged BOOLEAN NOT NULL,
    match_restful BOOLEAN NOT NULL,
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespace (namespace_id),
    sort_code INTEGER NOT NULL,
    handle TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX rule_list ON rule (selector_id, sort_code, id);
CREATE INDEX rule_namespace ON rule (namespace_id, sort_code, id);

CREATE TABLE rule_condition (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    rule_id TEXT COLLATE "C" NOT NULL REFERENCES rule (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    param_type TEXT NOT NULL,
    operator TEXT NOT NULL,
    param_name TEXT,
    param_value TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX rule_condition_rule ON rule_condition (rule_id, position);

CREATE TABLE meta_data (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    app_name TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    path_desc TEXT,
    rpc_type TEXT COLLATE "C" NOT NULL,
    service_name TEXT COLLATE "C",
    method_name TEXT,
    parameter_types TEXT,
    rpc_ext TEXT,
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespace (namespace_id),
    enabled BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (namespace_id, path)
);

CREATE INDEX meta_data_service ON meta_data (namespace_id, service_name);

-- Raw ports (plugin tcp).
CREATE TABLE proxy_selector (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    plugin_name TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C",
    forward_port INTEGER,
    props TEXT,
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespace (namespace_id),
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX proxy_selector_namespace ON proxy_selector (namespace_id, updated_ms, id);

-- Where upstreams come from. discovery_level '0' one selector, '1' a plugin, '2' all.
CREATE TABLE discovery (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    discovery_name TEXT COLLATE "C" NOT NULL,
    discovery_level TEXT COLLATE "C" NOT NULL,
    plugin_name TEXT COLLATE "C",
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespace (namespace_id),
    discovery_type TEXT COLLATE "C" NOT NULL,
    server_list TEXT,
    props TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX discovery_list ON discovery (namespace_id, discovery_level, plugin_name);

-- One per bound selector or raw port.
CREATE TABLE discovery_handler (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    discovery_id TEXT COLLATE "C" NOT NULL REFERENCES discovery (id),
    handler TEXT NOT NULL,
    listener_node TEXT,
    props TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX discovery_handler_discovery ON discovery_handler (discovery_id);

-- Ties a handler to a selector or to a raw port; the other side is null.
CREATE TABLE discovery_rel (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    plugin_name TEXT COLLATE "C" NOT NULL,
    discovery_handler_id TEXT COLLATE "C" NOT NULL UNIQUE
        REFERENCES discovery_handler (id) ON DELETE CASCADE,
    selector_id TEXT COLLATE "C" UNIQUE REFERENCES selector (id) ON DELETE CASCADE,
    proxy_selector_id TEXT COLLATE "C" UNIQUE REFERENCES proxy_selector (id) ON DELETE CASCADE,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

-- upstream_status 0 usable, 1 down.
CREATE TABLE discovery_upstream (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    discovery_handler_id TEXT COLLATE "C" NOT NULL
        REFERENCES discovery_handler (id) ON DELETE CASCADE,
    namespace_id TEXT COLLATE "C" NOT NULL,
    protocol TEXT COLLATE "C",
    upstream_url TEXT COLLATE "C" NOT NULL,
    upstream_status INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    props TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (discovery_handler_id, upstream_url)
);
