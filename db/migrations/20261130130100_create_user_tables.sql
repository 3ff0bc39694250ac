-- Users, roles, grants, and what users did.

-- `password` is a PHC string of argon2, or the 128 hexadecimal digits of an imported SHA-512.
-- `password_ms` is when it was last set by its user; null while it is the one given at set-up.
CREATE TABLE dashboard_user (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_name TEXT COLLATE "C" NOT NULL UNIQUE,
    password TEXT NOT NULL,
    role INTEGER NOT NULL DEFAULT 1,
    enabled BOOLEAN NOT NULL,
    client_id TEXT,
    password_ms BIGINT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

-- Names of roles need not be unique.
CREATE TABLE role (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    role_name TEXT COLLATE "C" NOT NULL,
    description TEXT,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE TABLE user_role (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id TEXT COLLATE "C" NOT NULL REFERENCES dashboard_user (id) ON DELETE CASCADE,
    role_id TEXT COLLATE "C" NOT NULL REFERENCES role (id) ON DELETE CASCADE,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (user_id, role_id)
);

CREATE INDEX user_role_role ON user_role (role_id);

-- The tree of menus (resource_type 0 root, 1 menu) and their buttons (2), which carry the
-- permission strings. parent_id is '' at the roots.
CREATE TABLE resource (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    parent_id TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    url TEXT NOT NULL,
    component TEXT NOT NULL,
    resource_type INTEGER NOT NULL,
    sort INTEGER NOT NULL,
    icon TEXT NOT NULL,
    is_leaf BOOLEAN NOT NULL,
    is_route INTEGER NOT NULL,
    perms TEXT COLLATE "C" NOT NULL,
    status INTEGER NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

CREATE INDEX resource_parent ON resource (parent_id);

-- A role (object_id) holds a resource.
CREATE TABLE permission (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    object_id TEXT COLLATE "C" NOT NULL REFERENCES role (id) ON DELETE CASCADE,
    resource_id TEXT COLLATE "C" NOT NULL REFERENCES resource (id) ON DELETE CASCADE,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (object_id, resource_id)
);

CREATE INDEX permission_resource ON permission (resource_id);

-- Which users work in a namespace.
CREATE TABLE namespace_user_rel (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    namespace_id TEXT COLLATE "C" NOT NULL REFERENCES namespace (namespace_id) ON DELETE CASCADE,
    user_id TEXT COLLATE "C" NOT NULL REFERENCES dashboard_user (id) ON DELETE CASCADE,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (namespace_id, user_id)
);

CREATE INDEX namespace_user_rel_user ON namespace_user_rel (user_id);

-- Row-level grants: data_type 0 selector, 1 rule; data_id is the id of either.
CREATE TABLE data_permission (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id TEXT COLLATE "C" NOT NULL REFERENCES dashboard_user (id) ON DELETE CASCADE,
    data_id TEXT COLLATE "C" NOT NULL,
    data_type INTEGER NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    UNIQUE (user_id, data_type, data_id)
);

CREATE INDEX data_permission_data ON data_permission (data_type, data_id);

CREATE TABLE operation_record_log (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    color TEXT NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    operator TEXT COLLATE "C" NOT NULL,
    operation_type TEXT COLLATE "C" NOT NULL,
    at_ms BIGINT NOT NULL
);

CREATE INDEX operation_record_log_at ON operation_record_log (at_ms, id);
