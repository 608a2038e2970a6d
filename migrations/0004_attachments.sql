-- Attachments in a bucket: a row whose values were moved there says where they are.

-- Length and hash of the whole body, of messages with pieces or attachments: tells a resend from a change without
-- reading either back. Null for rows of earlier versions.
ALTER TABLE messages ADD COLUMN digest TEXT;
-- JSON array of keys in the bucket. The body has each key where the value was.
ALTER TABLE messages ADD COLUMN attachments TEXT;
-- Bytes of those values.
ALTER TABLE messages ADD COLUMN attachment_bytes INTEGER;

-- Objects of the bucket that are to be deleted: no row refers to them, or none does yet.
CREATE TABLE dropped_attachments (
  key TEXT NOT NULL PRIMARY KEY,
  -- Unix milliseconds: not deleted before.
  due_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Not by owner: they are worked off oldest first, whoever's they were.
CREATE INDEX dropped_attachments_by_time ON dropped_attachments (due_at_ms);

-- Whatever deletes or replaces a message leaves its objects to be deleted, in the same batch.
CREATE TRIGGER attachments_of_deleted AFTER DELETE ON messages WHEN OLD.attachments IS NOT NULL
BEGIN
  INSERT INTO dropped_attachments (key, due_at_ms) SELECT value, 0 FROM json_each(OLD.attachments) WHERE TRUE
  ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER attachments_of_replaced AFTER UPDATE OF attachments ON messages
WHEN OLD.attachments IS NOT NULL AND OLD.attachments IS NOT NEW.attachments
BEGIN
  INSERT INTO dropped_attachments (key, due_at_ms) SELECT value, 0 FROM json_each(OLD.attachments) WHERE TRUE
  ON CONFLICT DO NOTHING;
END;
