-- Threads, runs and messages.
--
-- Times are Unix milliseconds. Every secondary index starts with the owner (resource_id); primary keys are ids.
-- An applied migration is never edited: the next change takes the next number.

CREATE TABLE threads (
  id TEXT NOT NULL PRIMARY KEY,
  resource_id TEXT NOT NULL,
  -- Random per creation: a run that began on an earlier thread of this id does not match it.
  incarnation TEXT NOT NULL,
  title TEXT,
  title_origin TEXT CHECK (title_origin IN ('provisional', 'generated', 'user')),
  -- A JSON object.
  metadata TEXT NOT NULL,
  -- The turn the next run takes, from 1.
  next_turn INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX threads_by_update ON threads (resource_id, updated_at_ms, id);
CREATE INDEX threads_by_creation ON threads (resource_id, created_at_ms, id);

-- What is left of a deleted thread, so that deleting it again succeeds for its owner.
CREATE TABLE deleted_threads (
  id TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  deleted_at_ms INTEGER NOT NULL,
  PRIMARY KEY (id, resource_id)
) STRICT, WITHOUT ROWID;

-- A run outlives its thread here: its id stays taken (D12) and late results still learn that it is over. It holds no
-- text of a person.
CREATE TABLE runs (
  id TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  -- Of the thread when the run began.
  incarnation TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  -- Address of the run's object, base64url.
  object TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'waiting', 'finished', 'failed', 'cancelled')),
  turn INTEGER NOT NULL,
  -- JSON array of token counts, once the run has ended.
  usage TEXT,
  started_at_ms INTEGER NOT NULL,
  -- A row still running or waiting after this reads as failed.
  deadline_ms INTEGER NOT NULL,
  finished_at_ms INTEGER,
  PRIMARY KEY (id, resource_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_live ON runs (resource_id, thread_id) WHERE status IN ('running', 'waiting');

CREATE TABLE messages (
  thread_id TEXT NOT NULL,
  id TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  -- Order within the thread: turn * 2^20 + index in the turn.
  place INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'activity', 'reasoning')),
  -- Second identity of a tool message.
  tool_call_id TEXT,
  -- The run that stored the message.
  run_id TEXT NOT NULL,
  -- The run that hid the message.
  superseded_by TEXT,
  -- JSON array of the calls of this message that a later run's messages answer.
  pending_calls TEXT,
  -- The AG-UI message as JSON text, or the first piece of it.
  body TEXT NOT NULL,
  -- Rows of message_pieces that continue the body.
  more_pieces INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (thread_id, id)
) STRICT;

-- The last two columns are here so that counting the rows of a page reads no message: SQLite looks the condition of
-- the index up again.
CREATE INDEX messages_visible ON messages (resource_id, thread_id, place, role, superseded_by)
  WHERE superseded_by IS NULL;
CREATE INDEX messages_pending ON messages (resource_id, thread_id, place)
  WHERE pending_calls IS NOT NULL AND superseded_by IS NULL;
CREATE UNIQUE INDEX messages_by_tool_call ON messages (resource_id, thread_id, tool_call_id)
  WHERE tool_call_id IS NOT NULL;

CREATE TABLE message_pieces (
  thread_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  -- From 1.
  piece INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (thread_id, message_id, piece)
) STRICT;
