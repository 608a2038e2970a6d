-- Titles in the form they are searched by, and ways to everything of an owner.

-- The title in lower case of every language, which SQLite's own `lower` does not know. Null where the previous version
-- wrote the title: such a title is found by its ASCII letters in any case and by the others as they are.
ALTER TABLE threads ADD COLUMN title_folded TEXT;

CREATE INDEX runs_by_start ON runs (resource_id, started_at_ms);
CREATE INDEX deleted_threads_by_time ON deleted_threads (resource_id, deleted_at_ms);
