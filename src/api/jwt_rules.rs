//! What a deployment wants of a token: the vocabulary of [`super::jwt`], which the configuration is written in.

/// How a token may be signed. `none` is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
    /// HMAC with SHA-256, a secret both sides have.
    Hs256,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: &[Self] = &[Self::Rs256, Self::Es256, Self::EdDsa, Self::Hs256];

    /// The name in a token's header. Source: RFC 7518, section 3.1; RFC 8037, section 3.1.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Hs256 => "HS256",
        }
    }

    /// Reads the name, exactly as it is.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|algorithm| algorithm.as_str() == name)
    }
}

/// Where the keys come from. What a token says about it (`jku`, `x5u`, `jwk`, `x5c`) is never looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A key set at this address, fetched and kept.
    Url {
        /// The address.
        url: String,
        /// How long a set is used without asking again, in milliseconds.
        fresh_ms: u64,
        /// How much longer it is used while the address cannot be reached, in milliseconds.
        grace_ms: u64,
    },
    /// The secret of this name: a shared secret (HS256), or a public key as PEM, JWK or JWK set.
    Secret(String),
}

/// What a deployment wants of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtRules {
    /// Header the token comes in; in `authorization` after `Bearer`, in any other alone. Lower case.
    pub token_header: String,
    /// Where the keys come from.
    pub keys: KeySource,
    /// How tokens may be signed; never HS256 beside another.
    pub algorithms: Vec<Algorithm>,
    /// `iss`, exactly.
    pub issuer: String,
    /// `aud` must have one of these; `None` = it is not looked at.
    pub audiences: Option<Vec<String>>,
    /// Claim that is the owner: a member's name, or names with dots between them.
    pub owner_claim: String,
    /// Claim that lists scopes: a text with spaces, or a list of texts.
    pub scope_claim: String,
    /// Scope of a trusted back end that acts for all.
    pub admin_scope: Option<String>,
    /// Scope without which nobody may call.
    pub required_scope: Option<String>,
    /// How far the issuer's clock may be from ours, in milliseconds.
    pub clock_skew_ms: u64,
}
