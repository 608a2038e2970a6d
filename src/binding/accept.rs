//! Which binding an Accept header asks for (D13).
