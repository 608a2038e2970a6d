-- Titles in the form they are searched by.

-- The title in lower case of every language, which SQLite's own `lower` does not know. Null where the previous version
-- wrote the title: such a title is found by its ASCII letters in any case and by the others as they are.
ALTER TABLE threads ADD COLUMN title_folded TEXT;
