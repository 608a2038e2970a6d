CREATE TABLE threads (
  id TEXT PRIMARY KEY, resource_id TEXT NOT NULL, title TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
CREATE INDEX threads_by_update ON threads (resource_id, updated_at);
CREATE TABLE runs (
  id TEXT, resource_id TEXT, thread_id TEXT NOT NULL, status TEXT NOT NULL, started_at INTEGER NOT NULL,
  PRIMARY KEY (id, resource_id)
);
CREATE TABLE messages (
  thread_id TEXT, id TEXT, place INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL,
  PRIMARY KEY (thread_id, id)
);
CREATE INDEX messages_by_place ON messages (thread_id, place);
