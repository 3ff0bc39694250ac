-- Who an upstream is from, so that what people configured is never taken away by itself:
-- 0 a person; 1 the instance itself, by registering, and no person changed the row since; 2 a person, and
-- its status says down because the instance is away, not because a person drained it.
ALTER TABLE discovery_upstream ADD COLUMN origin INTEGER NOT NULL DEFAULT 0;

-- Heartbeats look for the address of an instance.
CREATE INDEX discovery_upstream_url ON discovery_upstream (upstream_url);
