-- Descriptions of APIs for people. No gateway reads them, and they belong to no namespace.
-- http_method 0 get, 1 head, 2 post, 3 put, 4 patch, 5 delete, 6 options, 7 trace, 8 none.
-- state 0 unpublished, 1 published, 2 offline. api_source 0 swagger, 1 annotation, 2 a person,
-- 3 imported swagger, 4 imported yapi. One row per operation, so that instances that register at the
-- same time cannot make two.
CREATE TABLE api (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    context_path TEXT COLLATE "C" NOT NULL,
    api_path TEXT COLLATE "C" NOT NULL,
    http_method INTEGER NOT NULL,
    consume TEXT NOT NULL,
    produce TEXT NOT NULL,
    version TEXT NOT NULL,
    rpc_type TEXT COLLATE "C" NOT NULL,
    state INTEGER NOT NULL,
    ext TEXT NOT NULL,
    api_owner TEXT NOT NULL,
    api_desc TEXT NOT NULL,
    api_source INTEGER NOT NULL,
    document TEXT NOT NULL,
    document_md5 TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (api_path, http_method, rpc_type)
);

CREATE INDEX api_context_path ON api (context_path);

-- parent_tag_id is '0' at the roots.
CREATE TABLE tag (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tag_name TEXT COLLATE "C" NOT NULL,
    tag_desc TEXT NOT NULL,
    parent_tag_id TEXT COLLATE "C" NOT NULL,
    ext TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (parent_tag_id, tag_name)
);

CREATE TABLE tag_relation (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    api_id TEXT COLLATE "C" NOT NULL REFERENCES api (id) ON DELETE CASCADE,
    tag_id TEXT COLLATE "C" NOT NULL REFERENCES tag (id) ON DELETE CASCADE,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (api_id, tag_id)
);

CREATE INDEX tag_relation_tag ON tag_relation (tag_id);
