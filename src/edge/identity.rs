//! Who calls: the deployment's rules applied to a request's headers, with the platform's cryptography.

use std::cell::RefCell;
use std::pin::pin;

use futures::future::{Either, select};
use js_sys::{JSON, Object, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Crypto, CryptoKey, WorkerGlobalScope};

use super::bindings::Env;
use super::clock::PlatformClock;
use super::env;
use super::http::FetchClient;
use super::log::ConsoleLog;
use super::stream::describe;
use crate::api::auth::{
    AcceptedToken, GatewayHeaders, Principal, bearer_principal, bearer_token, gateway_principal,
};
use crate::api::error::ApiError;
use crate::api::jwt::jwks_cache::JwksCache;
use crate::api::jwt::key::{KeyMaterial, VerificationKey};
use crate::api::jwt::{self, JwtPorts, TokenFault};
use crate::api::jwt_rules::Algorithm;
use crate::config::{Auth, BearerToken, GatewayRules, TokenOwner};
use crate::list::List;
use crate::provider::HttpRequest;
use crate::run::ports::{Clock, HttpBody, HttpClient, Level, Log};

/// How long a key address may take, in milliseconds.
const KEYS_WAIT_MS: u64 = 5_000;

/// Longest key set, in bytes.
const KEYS_MAX_BYTES: usize = 256 * 1024;

const AUTHORIZATION: &str = "authorization";

thread_local! {
    /// Plain data only: a platform object must not outlive the request it came with.
    static KEYS: RefCell<JwksCache> = RefCell::default();
}

/// What a request says about its sender; nothing of it is checked yet.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    token: Option<String>,
    owner: Option<String>,
    proof: Option<String>,
}

/// Who calls: to be found out, or found out before, when a socket was opened.
#[derive(Debug)]
pub enum Identity {
    /// Not checked yet.
    Claimed(Credentials),
    /// Checked.
    Proven(Option<Principal>),
}

impl Credentials {
    /// Takes what the deployment's mode looks at from a request's headers.
    pub fn of(auth: &Auth, header: impl Fn(&str) -> Option<String>) -> Self {
        let after_bearer = || Some(bearer_token(&header(AUTHORIZATION)?)?.to_owned());
        match auth {
            Auth::None => Self::default(),
            Auth::Bearer(_) => Self {
                token: after_bearer(),
                ..Self::default()
            },
            Auth::Jwt(rules) if rules.token_header == AUTHORIZATION => Self {
                token: after_bearer(),
                ..Self::default()
            },
            Auth::Jwt(rules) => Self {
                token: header(&rules.token_header).map(|token| token.trim().to_owned()),
                ..Self::default()
            },
            Auth::Header(rules) => Self {
                token: None,
                owner: header(&rules.owner_header),
                proof: rules.proof.as_ref().and_then(|proof| header(&proof.header)),
            },
        }
    }

    /// With a token that came another way, where headers had none. Source: contract 7.
    #[must_use]
    pub fn or_token(mut self, token: Option<&str>) -> Self {
        self.token = self.token.or_else(|| token.map(str::to_owned));
        self
    }
}

/// Checks credentials; `None` = the deployment asks for none.
///
/// # Errors
/// 401, 403 of a token that says too little, 503 when tokens cannot be checked.
pub async fn authenticate(
    env: &Env,
    auth: &Auth,
    credentials: &Credentials,
    log: &ConsoleLog,
) -> Result<Option<Principal>, ApiError> {
    match auth {
        Auth::None => Ok(None),
        Auth::Bearer(tokens) => {
            let accepted = accepted_tokens(env, tokens, log);
            bearer_principal(&accepted, credentials.token.as_deref()).map(Some)
        }
        Auth::Header(rules) => by_gateway(env, rules, credentials, log).map(Some),
        Auth::Jwt(rules) => {
            let ports = PlatformJwt { env, log };
            let verified = jwt::verify(credentials.token.as_deref(), rules, &ports).await;
            let level = match verified {
                Ok(_) | Err(TokenFault::Missing) => Level::Debug,
                Err(TokenFault::KeysUnavailable) => Level::Error,
                Err(_) => Level::Info,
            };
            if let Err(fault) = verified {
                log.line(level, "token_refused", &[("reason", &fault)]);
            }
            verified.map(Some).map_err(ApiError::from)
        }
    }
}

/// The tokens themselves; one whose secret is missing is never accepted.
fn accepted_tokens(env: &Env, tokens: &[BearerToken], log: &ConsoleLog) -> Vec<AcceptedToken> {
    let accepted = tokens.iter().filter_map(|token| {
        Some(AcceptedToken {
            token: secret(env, &token.secret, log)?,
            principal: match &token.owner {
                TokenOwner::One(owner) => Principal::Owner(owner.clone()),
                TokenOwner::Any => Principal::Admin,
            },
        })
    });
    accepted.list()
}

fn by_gateway(
    env: &Env,
    rules: &GatewayRules,
    credentials: &Credentials,
    log: &ConsoleLog,
) -> Result<Principal, ApiError> {
    // A proof whose secret is missing is one nobody can give.
    let proof = rules
        .proof
        .as_ref()
        .map(|proof| secret(env, &proof.secret, log).unwrap_or_default());
    let headers = GatewayHeaders {
        owner: credentials.owner.as_deref(),
        proof: credentials.proof.as_deref(),
    };
    gateway_principal(headers, proof.as_deref())
}

fn secret(env: &Env, name: &str, log: &ConsoleLog) -> Option<String> {
    let secret = env::secret(env, name);
    if secret.is_none() {
        log.line(Level::Error, "secret_missing", &[("name", &name)]);
    }
    secret.map(|secret| secret.expose().to_owned())
}

struct PlatformJwt<'a> {
    env: &'a Env,
    log: &'a ConsoleLog,
}

impl JwtPorts for PlatformJwt<'_> {
    async fn check_signature(
        &self,
        algorithm: Algorithm,
        key: &VerificationKey,
        signed: &[u8],
        signature: &[u8],
    ) -> bool {
        let checked = check_signature(algorithm, &key.material, signed, signature).await;
        checked.unwrap_or_else(|thrown| {
            self.log
                .line(Level::Warn, "key_refused", &[("error", &describe(&thrown))]);
            false
        })
    }

    async fn fetch_keys(&self, url: &str) -> Option<String> {
        let fetched = match select(pin!(fetch_text(url)), PlatformClock.sleep(KEYS_WAIT_MS)).await {
            Either::Left((fetched, _)) => fetched,
            Either::Right(_) => Err("no answer in time".to_owned()),
        };
        fetched
            .map_err(|error| {
                self.log
                    .line(Level::Error, "keys_not_fetched", &[("error", &error)]);
            })
            .ok()
    }

    fn secret(&self, name: &str) -> Option<String> {
        secret(self.env, name, self.log)
    }

    fn with_cache<T>(&self, work: impl FnOnce(&mut JwksCache) -> T) -> T {
        KEYS.with_borrow_mut(work)
    }

    fn now_ms(&self) -> u64 {
        PlatformClock.now_ms()
    }
}

/// What the platform calls an algorithm, when it takes a key and when it checks.
fn algorithm_json(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Rs256 => r#"{"name":"RSASSA-PKCS1-v1_5","hash":"SHA-256"}"#,
        Algorithm::Es256 => r#"{"name":"ECDSA","namedCurve":"P-256","hash":"SHA-256"}"#,
        Algorithm::EdDsa => r#"{"name":"Ed25519"}"#,
        Algorithm::Hs256 => r#"{"name":"HMAC","hash":"SHA-256"}"#,
    }
}

async fn check_signature(
    algorithm: Algorithm,
    material: &KeyMaterial,
    signed: &[u8],
    signature: &[u8],
) -> Result<bool, JsValue> {
    let global: WorkerGlobalScope = js_sys::global().unchecked_into();
    let crypto: Crypto = global.crypto()?;
    let subtle = crypto.subtle();
    let name: Object = JSON::parse(algorithm_json(algorithm))?.unchecked_into();
    let (format, data): (&str, Object) = match material {
        KeyMaterial::Jwk(text) => ("jwk", JSON::parse(text)?.unchecked_into()),
        KeyMaterial::Spki(der) => ("spki", Uint8Array::from(der.as_slice()).unchecked_into()),
        KeyMaterial::Shared(secret) => ("raw", Uint8Array::from(secret.as_slice()).unchecked_into()),
    };
    let uses = js_sys::Array::of1(&"verify".into());
    let imported = subtle.import_key_with_object(format, &data, &name, false, &uses)?;
    let key: CryptoKey = JsFuture::from(imported).await?.dyn_into()?;
    let (signature, signed) = (Uint8Array::from(signature), Uint8Array::from(signed));
    let verified =
        subtle.verify_with_object_and_buffer_source_and_buffer_source(&name, &key, &signature, &signed)?;
    Ok(JsFuture::from(verified).await?.is_truthy())
}

async fn fetch_text(url: &str) -> Result<String, String> {
    let request = HttpRequest {
        method: "GET",
        url: url.to_owned(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        body: None,
    };
    let mut response = FetchClient.send(request).await.map_err(|error| error.0)?;
    if response.status != 200 {
        return Err(format!("status {}", response.status));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.body.next_chunk().await {
        bytes.extend_from_slice(&chunk.map_err(|error| error.0)?);
        if bytes.len() > KEYS_MAX_BYTES {
            return Err("the key set is too large".to_owned());
        }
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
