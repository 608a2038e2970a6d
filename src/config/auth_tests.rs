use serde_json::{Map, json};

use super::*;

fn read(auth: Value) -> Result<Auth, ConfigError> {
    let vars = Map::from_iter([("AUTH".to_owned(), auth)]);
    super::auth(Variables(&vars))
}

/// The shortest table of mode `jwt`, with more members over it; `null` takes one away.
fn jwt_with(more: Value) -> Result<Auth, ConfigError> {
    let mut table = json!({
        "mode": "jwt",
        "issuer": "https://issuer.example/",
        "audience": "app",
        "jwksUrl": "https://issuer.example/keys",
    });
    for (name, value) in more.as_object().unwrap() {
        table[name] = value.clone();
    }
    table.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    read(table)
}

#[test]
fn no_table_and_mode_none_let_everybody_in() {
    assert_eq!(read(json!({})), Ok(Auth::None));
    assert_eq!(read(json!({ "mode": "none" })), Ok(Auth::None));
    assert!(read(json!({ "mode": "none", "tokens": [] })).is_err());
}

#[test]
fn a_key_address_is_enough_for_tokens_of_an_issuer() {
    let rules = JwtRules {
        token_header: "authorization".to_owned(),
        keys: KeySource::Url {
            url: "https://issuer.example/keys".to_owned(),
            fresh_ms: 600_000,
            grace_ms: 86_400_000,
        },
        algorithms: vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa],
        issuer: "https://issuer.example/".to_owned(),
        audiences: Some(vec!["app".to_owned()]),
        owner_claim: "sub".to_owned(),
        scope_claim: "scope".to_owned(),
        admin_scope: None,
        required_scope: None,
        clock_skew_ms: 60_000,
    };
    assert_eq!(jwt_with(json!({})), Ok(Auth::Jwt(rules.clone())));
    let all = json!({
        "audience": ["a", "b"],
        "jwksUrl": null,
        "keySecret": "JWT_SECRET",
        "algorithms": ["HS256"],
        "ownerClaim": "app_metadata.owner",
        "scopeClaim": "permissions",
        "adminScope": "admin",
        "requiredScope": "chat",
        "tokenHeader": "Cf-Access-Jwt-Assertion",
        "clockSkewMs": 0,
    });
    let text = |text: &str| text.to_owned();
    assert_eq!(
        jwt_with(all),
        Ok(Auth::Jwt(JwtRules {
            token_header: text("cf-access-jwt-assertion"),
            keys: KeySource::Secret(text("JWT_SECRET")),
            algorithms: vec![Algorithm::Hs256],
            audiences: Some(vec![text("a"), text("b")]),
            owner_claim: text("app_metadata.owner"),
            scope_claim: text("permissions"),
            admin_scope: Some(text("admin")),
            required_scope: Some(text("chat")),
            clock_skew_ms: 0,
            ..rules.clone()
        }))
    );
    let Ok(Auth::Jwt(any)) = jwt_with(json!({ "audience": "*" })) else {
        panic!("`*` is an audience");
    };
    assert_eq!(any.audiences, None);
}

#[test]
fn what_would_make_tokens_weaker_is_a_mistake() {
    for (more, message) in [
        (json!({ "issuer": "" }), "AUTH.issuer must not be empty"),
        (
            json!({ "jwksUrl": null }),
            "AUTH must have either jwksUrl or keySecret",
        ),
        (
            json!({ "keySecret": "S" }),
            "AUTH must have either jwksUrl or keySecret",
        ),
        (
            json!({ "jwksUrl": null, "keySecret": "S" }),
            "AUTH.algorithms is needed beside keySecret",
        ),
        (
            json!({ "jwksUrl": null, "keySecret": "-----BEGIN PUBLIC KEY-----", "algorithms": ["RS256"] }),
            "AUTH.keySecret must be the name of a secret, not a key",
        ),
        (
            json!({ "algorithms": ["HS256"] }),
            "AUTH.algorithms must have HS256 alone, and with keySecret",
        ),
        (
            json!({ "jwksUrl": null, "keySecret": "S", "algorithms": ["RS256", "HS256"] }),
            "AUTH.algorithms must have HS256 alone, and with keySecret",
        ),
        (
            json!({ "algorithms": ["none"] }),
            "AUTH.algorithms must be some of RS256, ES256, EdDSA, HS256",
        ),
        (
            json!({ "algorithms": ["rs256"] }),
            "AUTH.algorithms must be some of RS256, ES256, EdDSA, HS256",
        ),
        (
            json!({ "audience": ["a", "*"] }),
            "AUTH.audience must be texts, or `*` alone to accept the issuer's tokens for any application",
        ),
        (
            json!({ "audience": [] }),
            "AUTH.audience must be texts, or `*` alone to accept the issuer's tokens for any application",
        ),
        (
            json!({ "tokenHeader": "a b" }),
            "AUTH.tokenHeader must be the name of a header",
        ),
        (
            json!({ "clockSkewMs": 604_800_001 }),
            "AUTH.clockSkewMs must be at most a week in milliseconds",
        ),
        (
            json!({ "audience": null }),
            "AUTH must have the keys of its mode, each of its form",
        ),
        (
            json!({ "jku": "x" }),
            "AUTH must have the keys of its mode, each of its form",
        ),
    ] {
        assert_eq!(jwt_with(more).unwrap_err().to_string(), message);
    }
}

#[test]
fn keys_come_over_a_closed_line_or_from_this_machine() {
    for (url, is_good) in [
        ("https://issuer.example/keys", true),
        ("http://127.0.0.1:9/keys", true),
        ("http://localhost/keys", true),
        ("http://issuer.example/keys", false),
        ("http://localhost.issuer.example/keys", false),
        ("http://127.0.0.1@issuer.example/keys", false),
        ("https://u:p@issuer.example/keys", false),
        ("https://issuer.example/keys?token=x", false),
        ("https://", false),
        ("issuer.example", false),
    ] {
        assert_eq!(jwt_with(json!({ "jwksUrl": url })).is_ok(), is_good, "{url}");
    }
}

#[test]
fn a_gateway_has_a_header_and_may_have_a_proof() {
    assert_eq!(
        read(json!({ "mode": "header", "ownerHeader": "X-Owner" })),
        Ok(Auth::Header(GatewayRules {
            owner_header: "x-owner".to_owned(),
            proof: None
        }))
    );
    let proof = |header: &str| json!({ "mode": "header", "ownerHeader": "X-Owner", "proofHeader": header, "proofSecret": "S" });
    assert_eq!(
        read(proof("X-Gateway")),
        Ok(Auth::Header(GatewayRules {
            owner_header: "x-owner".to_owned(),
            proof: Some(GatewayProof {
                header: "x-gateway".to_owned(),
                secret: "S".to_owned()
            }),
        }))
    );
    assert!(read(proof("x-owner")).is_err());
    for half in ["proofHeader", "proofSecret"] {
        let mut table = json!({ "mode": "header", "ownerHeader": "x" });
        table[half] = json!("S");
        assert!(read(table).is_err(), "{half}");
    }
}
