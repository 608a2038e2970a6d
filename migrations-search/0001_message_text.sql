-- Texts of messages, by their words. Derived from the main database and rebuilt by `make reindex`: what is found here
-- counts only if it is still there. A database of its own, because one with virtual tables cannot be exported.

CREATE VIRTUAL TABLE message_text USING fts5(
  -- One word each for owner, thread and message: a search reads the postings of its owner, not everybody's.
  keys,
  -- The first 50,000 characters; scripts without spaces have a zero-width space around each character.
  text,
  resource_id UNINDEXED,
  thread_id UNINDEXED,
  message_id UNINDEXED,
  tokenize = 'unicode61 remove_diacritics 2'
);
