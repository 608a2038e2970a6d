//! Messages by alternating roles, from a user to a user, for vendors that demand it.

/// What closes a conversation that would end with the assistant, and opens one that would begin with it.
/// Source: contract 2.1.
pub const CONTINUE: &str = "Continue.";

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person, and the results of calls.
    User,
    /// The model.
    Assistant,
}

/// What one side says until the other speaks; never without parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn<P> {
    /// Who.
    pub role: Role,
    /// What, in the vendor's form.
    pub parts: Vec<P>,
}

/// The turns so far.
#[derive(Debug)]
pub struct Turns<P> {
    turns: Vec<Turn<P>>,
    to_part: fn(&'static str) -> P,
}

impl<P> Turns<P> {
    /// No turns; `to_part` makes a text part in the vendor's form.
    pub fn new(to_part: fn(&'static str) -> P) -> Self {
        Self {
            turns: Vec::new(),
            to_part,
        }
    }

    /// Adds parts to the turn of this role, or opens it.
    pub fn push(&mut self, role: Role, parts: Vec<P>) {
        if parts.is_empty() {
            return;
        }
        if self.turns.is_empty() && role == Role::Assistant {
            self.push_continue();
        }
        match self.turns.last_mut() {
            Some(turn) if turn.role == role => turn.parts.extend(parts),
            Some(_) | None => self.turns.push(Turn { role, parts }),
        }
    }

    /// Adds an answer of this very run, as the vendor gave it. A turn of the user's precedes it as it did then: some
    /// vendors bind an answer's reasoning to every message before it.
    pub fn push_answer(&mut self, parts: Vec<P>) {
        if !parts.is_empty() && self.ends_with_assistant() {
            self.push_continue();
        }
        self.push(Role::Assistant, parts);
    }

    /// All turns, the last of them the user's.
    pub fn into_turns(mut self) -> Vec<Turn<P>> {
        if self.turns.is_empty() || self.ends_with_assistant() {
            self.push_continue();
        }
        self.turns
    }

    fn ends_with_assistant(&self) -> bool {
        self.turns.last().is_some_and(|turn| turn.role == Role::Assistant)
    }

    fn push_continue(&mut self) {
        let parts = vec![(self.to_part)(CONTINUE)];
        self.turns.push(Turn {
            role: Role::User,
            parts,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(said: &[(Role, &'static str)]) -> Vec<(Role, Vec<&'static str>)> {
        let mut turns = Turns::new(|text| text);
        for (role, text) in said {
            turns.push(*role, vec![*text]);
        }
        let listed = turns.into_turns().into_iter();
        listed.map(|turn| (turn.role, turn.parts)).collect()
    }

    #[test]
    fn roles_alternate_from_user_to_user() {
        use Role::{Assistant, User};
        let expected = vec![
            (User, vec![CONTINUE]),
            (Assistant, vec!["a", "b"]),
            (User, vec!["c", "d"]),
            (Assistant, vec!["e"]),
            (User, vec![CONTINUE]),
        ];
        let said = [
            (Assistant, "a"),
            (Assistant, "b"),
            (User, "c"),
            (User, "d"),
            (Assistant, "e"),
        ];
        assert_eq!(turns(&said), expected);
        assert_eq!(turns(&[]), [(User, vec![CONTINUE])]);
        assert_eq!(turns(&[(User, "a")]), [(User, vec!["a"])]);
    }

    #[test]
    fn an_answer_of_this_run_follows_what_it_answered() {
        let mut turns = Turns::new(|text| text);
        turns.push(Role::User, vec!["q"]);
        turns.push(Role::Assistant, vec!["from the history"]);
        let first_step = turns.turns.len();
        turns.push_answer(vec!["call"]);
        turns.push(Role::User, vec!["result"]);
        let roles: Vec<_> = turns.into_turns().into_iter().map(|turn| turn.parts).collect();
        assert_eq!(first_step, 2);
        assert_eq!(
            roles,
            [["q"], ["from the history"], [CONTINUE], ["call"], ["result"]]
        );
    }

    #[test]
    fn nothing_said_is_no_turn() {
        let mut turns: Turns<&str> = Turns::new(|text| text);
        turns.push(Role::User, vec![]);
        turns.push_answer(vec![]);
        assert_eq!(turns.turns, []);
    }
}
