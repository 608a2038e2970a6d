//! Signatures here are made up: `algorithm|key|signed` is the right one. tests/e2e/jwt.test.mjs has real ones.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use futures::executor::block_on;
use serde_json::{Value, json};

use super::jwks_cache::{FAILURE_PAUSE_MS, UNKNOWN_KEY_PAUSE_MS};
use super::key::KeyMaterial;
use super::*;
use crate::protocol::base64;
use crate::protocol::id::ResourceId;

const NOW_MS: u64 = 1_800_000_000_000;
const NOW_S: u64 = NOW_MS / 1000;
const FRESH_MS: u64 = 600_000;
const GRACE_MS: u64 = 3_600_000;

/// A clock, a key server and a secret, all in the test's hand.
struct Scene {
    now_ms: Cell<u64>,
    answers: RefCell<VecDeque<Option<String>>>,
    fetch_count: Cell<usize>,
    secret: Option<String>,
    cache: RefCell<JwksCache>,
}

impl Scene {
    fn new(answers: impl IntoIterator<Item = Option<Value>>) -> Self {
        let answers = answers.into_iter().map(|set| set.map(|set| set.to_string()));
        Self {
            now_ms: Cell::new(NOW_MS),
            answers: RefCell::new(answers.collect()),
            fetch_count: Cell::new(0),
            secret: None,
            cache: RefCell::default(),
        }
    }

    fn with_secret(text: &str) -> Self {
        Self {
            secret: Some(text.to_owned()),
            ..Self::new([])
        }
    }

    fn verify(&self, text: &str, rules: &JwtRules) -> Result<Principal, TokenFault> {
        block_on(verify(Some(text), rules, self))
    }

    fn wait(&self, ms: u64) {
        self.now_ms.set(self.now_ms.get() + ms);
    }
}

impl JwtPorts for Scene {
    async fn check_signature(
        &self,
        algorithm: Algorithm,
        key: &VerificationKey,
        signed: &[u8],
        signature: &[u8],
    ) -> bool {
        signature == sign(algorithm, &material_text(&key.material), signed)
    }

    async fn fetch_keys(&self, url: &str) -> Option<String> {
        assert_eq!(url, "https://issuer.example/keys");
        self.fetch_count.set(self.fetch_count.get() + 1);
        self.answers.borrow_mut().pop_front().expect("a fetch too many")
    }

    fn secret(&self, name: &str) -> Option<String> {
        assert_eq!(name, "KEY");
        self.secret.clone()
    }

    fn with_cache<T>(&self, work: impl FnOnce(&mut JwksCache) -> T) -> T {
        work(&mut self.cache.borrow_mut())
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }
}

fn material_text(material: &KeyMaterial) -> String {
    match material {
        KeyMaterial::Jwk(text) => text.clone(),
        KeyMaterial::Spki(bytes) | KeyMaterial::Shared(bytes) => format!("{bytes:?}"),
    }
}

fn sign(algorithm: Algorithm, key: &str, signed: &[u8]) -> Vec<u8> {
    let mut signature = format!("{algorithm:?}|{key}|").into_bytes();
    signature.extend_from_slice(signed);
    signature
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |bits: u32, index: usize| char::from(DIGITS[(bits >> (18 - 6 * index) & 63) as usize]);
    let chunk_text = |chunk: &[u8]| {
        let bits = (0..3).fold(0u32, |bits, at| {
            bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0))
        });
        (0..=chunk.len())
            .map(|index| digit(bits, index))
            .collect::<String>()
    };
    bytes.chunks(3).map(chunk_text).collect()
}

fn ec_key(kid: &str) -> Value {
    json!({ "kty": "EC", "crv": "P-256", "x": format!("x-{kid}"), "y": "y", "kid": kid, "use": "sig" })
}

/// What [`ec_key`] is for the platform.
fn ec_material(kid: &str) -> String {
    json!({ "kty": "EC", "crv": "P-256", "x": format!("x-{kid}"), "y": "y" }).to_string()
}

fn set(kids: &[&str]) -> Option<Value> {
    Some(json!({ "keys": kids.iter().map(|kid| ec_key(kid)).collect::<Vec<_>>() }))
}

fn rules() -> JwtRules {
    JwtRules {
        token_header: "authorization".to_owned(),
        keys: KeySource::Url {
            url: "https://issuer.example/keys".to_owned(),
            fresh_ms: FRESH_MS,
            grace_ms: GRACE_MS,
        },
        algorithms: vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa],
        issuer: "https://issuer.example/".to_owned(),
        audiences: Some(vec!["app".to_owned(), "app2".to_owned()]),
        owner_claim: "sub".to_owned(),
        scope_claim: "scope".to_owned(),
        admin_scope: Some("bridge:admin".to_owned()),
        required_scope: None,
        clock_skew_ms: 60_000,
    }
}

fn secret_rules(algorithm: Algorithm) -> JwtRules {
    JwtRules {
        keys: KeySource::Secret("KEY".to_owned()),
        algorithms: vec![algorithm],
        ..rules()
    }
}

fn claims() -> Value {
    json!({ "iss": "https://issuer.example/", "aud": "app", "sub": "ada", "exp": NOW_S + 300 })
}

fn with(mut object: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    object
}

/// A token signed with a key, whatever its header says.
fn token_of(header: &Value, claims: &Value, algorithm: Algorithm, key: &str) -> String {
    let signed = format!(
        "{}.{}",
        base64url(header.to_string().as_bytes()),
        base64url(claims.to_string().as_bytes())
    );
    let signature = sign(algorithm, key, signed.as_bytes());
    format!("{signed}.{}", base64url(&signature))
}

fn token(kid: &str, claims: &Value) -> String {
    let header = json!({ "alg": "ES256", "kid": kid });
    token_of(&header, claims, Algorithm::Es256, &ec_material(kid))
}

fn ada() -> Result<Principal, TokenFault> {
    Ok(Principal::Owner(ResourceId::new("ada")))
}

fn judged(claim_changes: Value, rules: &JwtRules) -> Result<Principal, TokenFault> {
    Scene::new([set(&["k1"])]).verify(&token("k1", &with(claims(), claim_changes)), rules)
}

#[test]
fn claims_decide_for_whom_and_until_when() {
    let owner = |name: &str| Ok(Principal::Owner(ResourceId::new(name)));
    for (changes, expected) in [
        (json!({}), ada()),
        (json!({ "aud": ["other", "app2"] }), ada()),
        (json!({ "aud": ["other"] }), Err(TokenFault::WrongAudience)),
        (json!({ "aud": "app app2" }), Err(TokenFault::WrongAudience)),
        (json!({ "aud": null }), Err(TokenFault::WrongAudience)),
        (
            json!({ "iss": "https://issuer.example" }),
            Err(TokenFault::WrongIssuer),
        ),
        (json!({ "iss": null }), Err(TokenFault::WrongIssuer)),
        (json!({ "exp": NOW_S - 59 }), ada()),
        (json!({ "exp": NOW_S - 60 }), Err(TokenFault::Expired)),
        (json!({ "exp": NOW_S as f64 - 59.5 }), ada()),
        (json!({ "exp": null }), Err(TokenFault::Expired)),
        (json!({ "exp": "9999999999" }), Err(TokenFault::Expired)),
        (json!({ "nbf": NOW_S + 60 }), ada()),
        (json!({ "nbf": NOW_S + 61 }), Err(TokenFault::NotYetValid)),
        (json!({ "nbf": "0" }), Err(TokenFault::NotYetValid)),
        (json!({ "sub": null }), Err(TokenFault::OwnerMissing)),
        (json!({ "sub": "" }), Err(TokenFault::OwnerMissing)),
        (json!({ "sub": "a\u{7}" }), Err(TokenFault::OwnerMissing)),
        (json!({ "sub": ["ada"] }), Err(TokenFault::OwnerMissing)),
        (json!({ "sub": 42 }), owner("42")),
        (json!({ "sub": 4.2 }), Err(TokenFault::OwnerMissing)),
        // An id is never more than an id.
        (json!({ "sub": "*" }), owner("*")),
        (json!({ "scope": "chat bridge:admin" }), Ok(Principal::Admin)),
        (json!({ "scope": ["bridge:admin"] }), Ok(Principal::Admin)),
        (json!({ "scope": "bridge:administrator" }), ada()),
        (
            json!({ "scope": "bridge:admin", "exp": 1 }),
            Err(TokenFault::Expired),
        ),
    ] {
        assert_eq!(judged(changes.clone(), &rules()), expected, "{changes}");
    }
}

#[test]
fn claims_are_found_by_name_or_by_path() {
    let rules = |owner: &str, scope: &str| JwtRules {
        owner_claim: owner.to_owned(),
        scope_claim: scope.to_owned(),
        required_scope: Some("chat".to_owned()),
        ..rules()
    };
    let by_path = rules("app_metadata.tenant", "realm_access.roles");
    let changes = json!({ "app_metadata": { "tenant": "ada" }, "realm_access": { "roles": ["chat"] } });
    assert_eq!(judged(changes, &by_path), ada());
    let by_name = rules("https://app.example/owner", "permissions");
    let changes = json!({ "https://app.example/owner": "ada", "permissions": ["chat"] });
    assert_eq!(judged(changes, &by_name), ada());
    assert_eq!(judged(json!({}), &by_path), Err(TokenFault::ScopeMissing));
    let changes = json!({ "app_metadata": "x", "realm_access": { "roles": "chat" } });
    assert_eq!(judged(changes, &by_path), Err(TokenFault::OwnerMissing));
    let any_audience = JwtRules {
        audiences: None,
        ..self::rules()
    };
    assert_eq!(judged(json!({ "aud": null }), &any_audience), ada());
}

#[test]
fn the_header_neither_weakens_nor_leads_anywhere() {
    let es256 = ec_material("k1");
    let signed_with = |header: Value, algorithm, key: &str| {
        Scene::new([set(&["k1"])]).verify(&token_of(&header, &claims(), algorithm, key), &rules())
    };
    let header = |more: Value| with(json!({ "alg": "ES256", "kid": "k1" }), more);
    for (more, expected) in [
        (json!({ "typ": "JWT" }), ada()),
        (json!({ "typ": "application/at+jwt" }), ada()),
        (json!({ "typ": "logout+jwt" }), Err(TokenFault::Malformed)),
        (
            json!({ "crit": ["b64"], "b64": false }),
            Err(TokenFault::Malformed),
        ),
        (json!({ "kid": 7 }), Err(TokenFault::Malformed)),
        (json!({ "kid": null }), ada()),
        // Nothing is fetched but the deployment's own address, which the scene asserts.
        (
            json!({ "jku": "https://evil.test/keys", "x5u": "https://evil.test/x", "jwk": ec_key("evil") }),
            ada(),
        ),
        (json!({ "alg": "none" }), Err(TokenFault::AlgorithmRefused)),
        (json!({ "alg": "None" }), Err(TokenFault::AlgorithmRefused)),
        (json!({ "alg": "HS256" }), Err(TokenFault::AlgorithmRefused)),
        (json!({ "alg": "es256" }), Err(TokenFault::AlgorithmRefused)),
        (json!({ "alg": null }), Err(TokenFault::AlgorithmRefused)),
        // Allowed, but no key of the set is of its type.
        (json!({ "alg": "RS256" }), Err(TokenFault::KeyUnknown)),
    ] {
        let case = more.to_string();
        assert_eq!(
            signed_with(header(more), Algorithm::Es256, &es256),
            expected,
            "{case}"
        );
    }
    let other = ec_material("other");
    assert_eq!(
        signed_with(header(json!({})), Algorithm::Es256, &other),
        Err(TokenFault::BadSignature)
    );
}

#[test]
fn what_is_no_token_is_refused() {
    let scene = Scene::new([set(&["k1"])]);
    let good = token("k1", &claims());
    assert_eq!(scene.verify(&good, &rules()), ada());
    let [header, payload, signature]: [&str; 3] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    for text in [
        String::new(),
        "x".to_owned(),
        "..".to_owned(),
        format!("{header}.{payload}"),
        format!("{good}.{signature}"),
        format!("{header}.{payload}.{signature}="),
        format!(" {good}"),
        format!("{header}.{}.{signature}", base64url(b"[]")),
        format!("{}.{payload}.{signature}", base64url(b"null")),
        "x".repeat(token::TOKEN_MAX_BYTES + 1),
    ] {
        let fault = scene.verify(&text, &rules());
        assert_eq!(fault, Err(TokenFault::Malformed), "{text}");
    }
    let none = format!("{}.{payload}.", base64url(br#"{"alg":"none"}"#));
    assert_eq!(scene.verify(&none, &rules()), Err(TokenFault::AlgorithmRefused));
    let changed = format!(
        "{header}.{}.{signature}",
        base64url(claims().to_string().to_uppercase().as_bytes())
    );
    assert_eq!(scene.verify(&changed, &rules()), Err(TokenFault::BadSignature));
    assert_eq!(block_on(verify(None, &rules(), &scene)), Err(TokenFault::Missing));
}

#[test]
fn a_public_key_is_never_a_shared_secret() {
    // SubjectPublicKeyInfo of P-256, its point left out: its type is in its head.
    const PEM: &str =
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n";
    let header = json!({ "alg": "HS256" });
    let forged = token_of(
        &header,
        &claims(),
        Algorithm::Hs256,
        &format!("{:?}", PEM.trim().as_bytes()),
    );
    // The deployment checks ES256: the algorithm of the token does not change what the secret is.
    let scene = Scene::with_secret(PEM);
    assert_eq!(
        scene.verify(&forged, &secret_rules(Algorithm::Es256)),
        Err(TokenFault::AlgorithmRefused)
    );
    // It says HS256 by mistake: a PEM is no shared secret.
    assert_eq!(
        scene.verify(&forged, &secret_rules(Algorithm::Hs256)),
        Err(TokenFault::KeysUnavailable)
    );
    // A key set that anybody can fetch has no shared secrets.
    let shared = json!({ "keys": [{ "kty": "oct", "k": base64url(&[7; 32]), "kid": "k1" }] });
    let allowing = JwtRules {
        algorithms: vec![Algorithm::Hs256],
        ..rules()
    };
    let forged = token_of(&header, &claims(), Algorithm::Hs256, &format!("{:?}", [7u8; 32]));
    assert_eq!(
        Scene::new([Some(shared)]).verify(&forged, &allowing),
        Err(TokenFault::KeyUnknown)
    );
}

#[test]
fn a_secret_may_hold_text_pem_jwk_or_a_set() {
    let long = "a shared secret of thirty-two bytes or more";
    let shared = format!("{:?}", long.as_bytes());
    let hs256 = token_of(
        &json!({ "alg": "HS256", "kid": "any" }),
        &claims(),
        Algorithm::Hs256,
        &shared,
    );
    let hs = secret_rules(Algorithm::Hs256);
    assert_eq!(
        Scene::with_secret(&format!("{long}\n")).verify(&hs256, &hs),
        ada()
    );
    let oct = json!({ "kty": "oct", "k": base64url(long.as_bytes()) });
    assert_eq!(Scene::with_secret(&oct.to_string()).verify(&hs256, &hs), ada());
    for text in ["too short", "{}", "", "[]"] {
        let fault = Scene::with_secret(text).verify(&hs256, &hs);
        assert_eq!(fault, Err(TokenFault::KeysUnavailable), "{text}");
    }
    let es = secret_rules(Algorithm::Es256);
    let es256 = token("k1", &claims());
    for text in [ec_key("k1").to_string(), set(&["k0", "k1"]).unwrap().to_string()] {
        assert_eq!(Scene::with_secret(&text).verify(&es256, &es), ada());
    }
    assert_eq!(
        Scene::with_secret(&ec_key("k2").to_string()).verify(&es256, &es),
        Err(TokenFault::KeyUnknown)
    );
    let pem = "-----BEGIN PUBLIC KEY-----\\nMCowBQYDK2VwAyEA\\n-----END PUBLIC KEY-----";
    let der = format!("{:?}", base64::decode_standard("MCowBQYDK2VwAyEA").unwrap());
    let eddsa = token_of(&json!({ "alg": "EdDSA" }), &claims(), Algorithm::EdDsa, &der);
    assert_eq!(
        Scene::with_secret(pem).verify(&eddsa, &secret_rules(Algorithm::EdDsa)),
        ada()
    );
    for text in [
        long,
        "-----BEGIN CERTIFICATE-----\nMCow\n-----END CERTIFICATE-----",
    ] {
        let fault = Scene::with_secret(text).verify(&es256, &es);
        assert_eq!(fault, Err(TokenFault::KeysUnavailable), "{text}");
    }
}

#[test]
fn keys_for_other_purposes_and_weak_ones_are_left_out() {
    let ec = |more: Value| with(ec_key("k1"), more);
    let short_rsa = json!({ "kty": "RSA", "n": base64url(&[1; 128]), "e": "AQAB", "kid": "k1" });
    for key in [
        ec(json!({ "use": "enc" })),
        ec(json!({ "use": null, "key_ops": ["sign"] })),
        ec(json!({ "alg": "ES384" })),
        ec(json!({ "crv": "P-384" })),
        ec(json!({ "x": null })),
        short_rsa,
        json!("x"),
        json!({}),
    ] {
        let scene = Scene::new([Some(json!({ "keys": [key] }))]);
        let fault = scene.verify(&token("k1", &claims()), &rules());
        assert_eq!(fault, Err(TokenFault::KeyUnknown), "{key}");
    }
    let marked = ec(json!({ "key_ops": ["verify"], "alg": "ES256", "d": "private" }));
    let scene = Scene::new([Some(json!({ "keys": [marked] }))]);
    assert_eq!(scene.verify(&token("k1", &claims()), &rules()), ada());
    let modulus = base64url(&[1; 256]);
    let rsa = json!({ "kty": "RSA", "n": modulus, "e": "AQAB" });
    let signed = token_of(
        &json!({ "alg": "RS256", "kid": "r" }),
        &claims(),
        Algorithm::Rs256,
        &rsa.to_string(),
    );
    let scene = Scene::new([Some(json!({ "keys": [with(rsa, json!({ "kid": "r" }))] }))]);
    assert_eq!(scene.verify(&signed, &rules()), ada());
}

#[test]
fn a_set_is_fetched_once_while_it_is_fresh() {
    let scene = Scene::new([set(&["k1"]), set(&["k1"])]);
    let token = token("k1", &with(claims(), json!({ "exp": NOW_S * 2 })));
    for _ in 0..3 {
        assert_eq!(scene.verify(&token, &rules()), ada());
    }
    scene.wait(FRESH_MS);
    assert_eq!(scene.verify(&token, &rules()), ada());
    assert_eq!(scene.fetch_count.get(), 1);
    scene.wait(1);
    assert_eq!(scene.verify(&token, &rules()), ada());
    assert_eq!(scene.fetch_count.get(), 2);
}

#[test]
fn a_new_key_is_found_and_unknown_ones_do_not_become_requests() {
    let scene = Scene::new([set(&["k1"]), set(&["k1", "k2"]), set(&["k2"])]);
    let old = token("k1", &claims());
    let new = token("k2", &claims());
    let forged = token("k3", &claims());
    assert_eq!(scene.verify(&old, &rules()), ada());
    // The pause counts from the last fetch.
    assert_eq!(scene.verify(&new, &rules()), Err(TokenFault::KeyUnknown));
    assert_eq!(scene.fetch_count.get(), 1);
    scene.wait(UNKNOWN_KEY_PAUSE_MS);
    assert_eq!(scene.verify(&new, &rules()), ada());
    assert_eq!(scene.fetch_count.get(), 2);
    for _ in 0..100 {
        assert_eq!(scene.verify(&forged, &rules()), Err(TokenFault::KeyUnknown));
    }
    assert_eq!(scene.fetch_count.get(), 2);
    // A key that was taken back checks nothing any more.
    scene.wait(UNKNOWN_KEY_PAUSE_MS);
    assert_eq!(scene.verify(&forged, &rules()), Err(TokenFault::KeyUnknown));
    assert_eq!(scene.verify(&old, &rules()), Err(TokenFault::KeyUnknown));
    assert_eq!(scene.fetch_count.get(), 3);
}

#[test]
fn an_issuer_that_cannot_be_reached_is_asked_with_pauses_and_its_keys_used_on() {
    let no_set = || Some(json!({ "error": "x" }));
    let scene = Scene::new([None, no_set(), set(&["k1"]), None, None]);
    let token = token("k1", &with(claims(), json!({ "exp": NOW_S * 2 })));
    let unavailable = Err(TokenFault::KeysUnavailable);
    for count in [1, 1, 1] {
        assert_eq!(scene.verify(&token, &rules()), unavailable);
        assert_eq!(scene.fetch_count.get(), count);
    }
    scene.wait(FAILURE_PAUSE_MS);
    assert_eq!(scene.verify(&token, &rules()), unavailable);
    scene.wait(FAILURE_PAUSE_MS);
    assert_eq!(scene.verify(&token, &rules()), ada());
    assert_eq!(scene.fetch_count.get(), 3);
    scene.wait(FRESH_MS + 1);
    assert_eq!(scene.verify(&token, &rules()), ada());
    assert_eq!(scene.verify(&token, &rules()), ada());
    assert_eq!(scene.fetch_count.get(), 4);
    scene.wait(GRACE_MS);
    assert_eq!(scene.verify(&token, &rules()), unavailable);
    assert_eq!(scene.fetch_count.get(), 5);
}

#[test]
fn each_fault_is_one_answer() {
    for (fault, status) in [
        (TokenFault::Missing, 401),
        (TokenFault::BadSignature, 401),
        (TokenFault::OwnerMissing, 403),
        (TokenFault::ScopeMissing, 403),
        (TokenFault::KeysUnavailable, 503),
    ] {
        assert_eq!(ApiError::from(fault).status(), status, "{fault:?}");
    }
}
