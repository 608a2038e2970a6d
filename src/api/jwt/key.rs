//! Keys that check signatures: read from key sets and secrets, chosen for a token.

use serde_json::Value;

use crate::api::jwt_rules::Algorithm;
use crate::list::List;
use crate::protocol::base64;
use crate::protocol::json;
use crate::protocol::parts;
use crate::protocol::tree::json;

/// Most keys kept of a set.
const KEYS_MAX: usize = 64;

/// Shortest modulus and shared secret, in bytes. Source: RFC 7518, sections 3.3 and 3.2.
const RSA_MODULUS_MIN_BYTES: usize = 256;
const SHARED_SECRET_MIN_BYTES: usize = 32;

/// A key, for exactly one algorithm: that of its type.
#[derive(Clone, PartialEq, Eq)]
pub struct VerificationKey {
    /// `kid`; without one the key fits any token.
    pub key_id: Option<String>,
    /// What it checks.
    pub algorithm: Algorithm,
    /// The key itself.
    pub material: KeyMaterial,
}

/// A key as the platform takes it.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyMaterial {
    /// JSON text of a public JWK with nothing but its type and numbers.
    Jwk(String),
    /// DER of a SubjectPublicKeyInfo.
    Spki(Vec<u8>),
    /// A shared secret.
    Shared(Vec<u8>),
}

impl std::fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VerificationKey({:?}, {:?})", self.key_id, self.algorithm)
    }
}

/// The keys of a deployment's issuer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeySet(Vec<VerificationKey>);

impl KeySet {
    /// Reads a set that anybody may fetch: its public keys, others are left out. `None` = no set.
    ///
    /// Shape: `{"keys": [JWK]}`. Source: RFC 7517, section 5.
    pub fn from_jwks(text: &str) -> Option<Self> {
        let set = json::object(text)?;
        let keys = set.get("keys")?.as_array()?;
        let public = keys.iter().filter_map(from_jwk).filter(|key| key.is_public());
        Some(Self(public.take(KEYS_MAX).list()))
    }

    /// Reads the text of a secret. What it is follows from what the deployment allows: a shared secret where it says
    /// HS256 alone, public keys otherwise; so a PEM is never taken for a shared secret. `None` = it has no such key.
    pub fn from_secret(text: &str, allowed: &[Algorithm]) -> Option<Self> {
        let text = text.trim();
        let is_shared = allowed == [Algorithm::Hs256];
        let keys = match json::object(text) {
            Some(object) => match object.get("keys").and_then(Value::as_array) {
                Some(keys) => keys.iter().filter_map(from_jwk).list(),
                None => from_jwk(&Value::Object(object)).into_iter().list(),
            },
            None if text.starts_with("-----") => from_pem(text).into_iter().list(),
            None if is_shared => from_shared(text.as_bytes().to_vec()).into_iter().list(),
            None => Vec::new(),
        };
        let mut keys: Vec<VerificationKey> = keys;
        keys.retain(|key| key.is_public() != is_shared);
        keys.truncate(KEYS_MAX);
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The keys that may have signed a token of this algorithm and `kid`.
    pub fn fitting(&self, algorithm: Algorithm, key_id: Option<&str>) -> Vec<VerificationKey> {
        let is_named = |key: &VerificationKey| match (key.key_id.as_deref(), key_id) {
            (Some(own), Some(wanted)) => own == wanted,
            (None, _) | (_, None) => true,
        };
        let fits = |key: &&VerificationKey| key.algorithm == algorithm && is_named(key);
        self.0.iter().filter(fits).cloned().list()
    }
}

impl VerificationKey {
    fn is_public(&self) -> bool {
        match self.material {
            KeyMaterial::Jwk(_) | KeyMaterial::Spki(_) => true,
            KeyMaterial::Shared(_) => false,
        }
    }
}

/// A JWK for signatures whose type we know; one for encryption, or for another algorithm, is left out.
/// Source: RFC 7517, section 4; RFC 7518, section 6; RFC 8037, section 2.
fn from_jwk(jwk: &Value) -> Option<VerificationKey> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    let bytes = |name: &str| text(name).and_then(base64::decode_url);
    let has = |name: &str, wanted: &str| match jwk.get(name) {
        None => true,
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        Some(_) => false,
    };
    let (algorithm, material) = match (text("kty")?, text("crv")) {
        ("RSA", _) => {
            let modulus = bytes("n")?;
            let length = modulus.iter().skip_while(|byte| **byte == 0).count();
            (length >= RSA_MODULUS_MIN_BYTES).then_some(())?;
            let key = json!({ "kty": "RSA", "n": text("n")?, "e": text("e")? });
            (Algorithm::Rs256, KeyMaterial::Jwk(json::text(&key)))
        }
        ("EC", Some("P-256")) => {
            let key = json!({ "kty": "EC", "crv": "P-256", "x": text("x")?, "y": text("y")? });
            (Algorithm::Es256, KeyMaterial::Jwk(json::text(&key)))
        }
        ("OKP", Some("Ed25519")) => {
            let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": text("x")? });
            (Algorithm::EdDsa, KeyMaterial::Jwk(json::text(&key)))
        }
        ("oct", _) => {
            let key = from_shared(bytes("k")?)?;
            (key.algorithm, key.material)
        }
        _ => return None,
    };
    let is_ours = has("use", "sig") && has("key_ops", "verify") && has("alg", algorithm.as_str());
    is_ours.then(|| VerificationKey {
        key_id: text("kid").map(str::to_owned),
        algorithm,
        material,
    })
}

fn from_shared(secret: Vec<u8>) -> Option<VerificationKey> {
    (secret.len() >= SHARED_SECRET_MIN_BYTES).then_some(VerificationKey {
        key_id: None,
        algorithm: Algorithm::Hs256,
        material: KeyMaterial::Shared(secret),
    })
}

/// Object identifiers inside a SubjectPublicKeyInfo. Source: RFC 3279, RFC 5480, RFC 8410.
const RSA_OID: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const P256_OID: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ED25519_OID: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];

/// Where they stand at the latest, in bytes.
const OID_END_MAX: usize = 32;

/// `-----BEGIN PUBLIC KEY-----`. The platform looks at the rest when it takes the key.
fn from_pem(text: &str) -> Option<VerificationKey> {
    let body = text.strip_prefix("-----BEGIN PUBLIC KEY-----")?;
    let (body, _) = parts::split_once(body, "-----END PUBLIC KEY-----")?;
    let digits: String = body.split_ascii_whitespace().collect();
    // A PEM in a secret that holds one line has its line ends written out.
    let digits: String = parts::split(&digits, "\\n").collect();
    let der = base64::decode_standard(&digits)?;
    let head = der.get(..der.len().min(OID_END_MAX))?;
    let has = |oid: &[u8]| head.windows(oid.len()).any(|window| window == oid);
    let algorithm = if has(RSA_OID) {
        (der.len() > RSA_MODULUS_MIN_BYTES).then_some(Algorithm::Rs256)?
    } else if has(P256_OID) {
        Algorithm::Es256
    } else if has(ED25519_OID) {
        Algorithm::EdDsa
    } else {
        return None;
    };
    Some(VerificationKey {
        key_id: None,
        algorithm,
        material: KeyMaterial::Spki(der),
    })
}
