//! What a database's error text means.

use super::DatabaseError;
use crate::protocol::parts;

/// Texts of faults in a statement or its values: sending it again changes nothing.
const REFUSALS: &[&str] = &[
    "syntax error",
    "no such ",
    "has no column",
    "ambiguous column",
    "incomplete input",
    "datatype mismatch",
    "D1_TYPE_ERROR",
    "D1_EXEC_ERROR",
    "SQLITE_TOOBIG",
    "too big",
    "too many SQL variables",
    "too many terms",
    "too complex",
    "statement too long",
    "parameter bindings",
    "malformed JSON",
    "not authorized",
    "SQLITE_AUTH",
    "SQLITE_ERROR",
    "SQLITE_MISMATCH",
    "maximum DB size",
    "SQLITE_FULL",
];

impl DatabaseError {
    /// Reads the text of D1 or SQLite. Whatever is not known to be a fault of the statement may pass on a second try:
    /// every batch of the store may be sent again.
    pub fn from_text(text: &str) -> Self {
        let has = |known: &str| parts::has(text, known);
        let owned = || text.to_owned();
        // `SQLITE_CONSTRAINT` comes with the sentence, the sentence also alone.
        if has("constraint failed") || has("SQLITE_CONSTRAINT") {
            Self::Constraint(owned())
        } else if REFUSALS.iter().any(|known| has(known)) {
            Self::Refused(owned())
        } else {
            Self::Unavailable(owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraint_texts_are_constraints() {
        for text in [
            "UNIQUE constraint failed: runs.id, runs.resource_id",
            "D1_ERROR: UNIQUE constraint failed: threads.id: SQLITE_CONSTRAINT",
            "D1_ERROR: CHECK constraint failed: status: SQLITE_CONSTRAINT",
        ] {
            assert_eq!(
                DatabaseError::from_text(text),
                DatabaseError::Constraint(text.to_owned())
            );
        }
    }

    #[test]
    fn faults_of_a_statement_are_refused() {
        for text in [
            "D1_ERROR: no such table: threads: SQLITE_ERROR",
            "D1_ERROR: near \"SELEC\": syntax error at offset 0: SQLITE_ERROR",
            "D1_ERROR: string or blob too big: SQLITE_TOOBIG",
            "D1_ERROR: too many SQL variables at offset 402: SQLITE_ERROR",
            "D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined'",
            "D1_ERROR: Wrong number of parameter bindings for SQL query.",
        ] {
            assert_eq!(
                DatabaseError::from_text(text),
                DatabaseError::Refused(text.to_owned())
            );
        }
    }

    #[test]
    fn load_resets_and_lost_connections_are_unavailable() {
        for text in [
            "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
            "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
            "D1_ERROR: D1 DB reset because its code was updated.",
            "D1_ERROR: Internal error in D1 DB storage caused object to be reset.",
            "D1_ERROR: Network connection lost.",
            "Error: something nobody has seen",
        ] {
            assert_eq!(
                DatabaseError::from_text(text),
                DatabaseError::Unavailable(text.to_owned())
            );
        }
    }
}
