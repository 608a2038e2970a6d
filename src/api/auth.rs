//! Who is calling, and what is theirs (D4).

use std::fmt;

use super::error::ApiError;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::ResourceId;

/// A token and whom it stands for.
#[derive(Clone, PartialEq, Eq)]
pub struct AcceptedToken {
    /// The secret text; an empty one is never accepted.
    pub token: String,
    /// Who sends it.
    pub principal: Principal,
}

impl fmt::Debug for AcceptedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AcceptedToken({:?})", self.principal)
    }
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// Acts for one owner; any other resourceId is refused.
    Owner(ResourceId),
    /// A trusted back end, configured as `*`: acts for the owner it names.
    Admin,
}

/// Whose token this is.
///
/// # Errors
/// 401 when it is nobody's.
pub fn bearer_principal(accepted: &[AcceptedToken], token: Option<&str>) -> Result<Principal, ApiError> {
    let given = token.unwrap_or_default();
    // Every token is compared, so that the time taken does not tell which one was nearly right.
    let matches = accepted
        .iter()
        .filter(|accepted| equal_in_constant_time(&accepted.token, given));
    let first = matches.fold(None, |first, accepted| first.or(Some(&accepted.principal)));
    first.cloned().ok_or_else(ApiError::unauthenticated)
}

/// What a gateway in front of us says in its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayHeaders<'a> {
    /// Whom it has authenticated; `*` = a trusted back end.
    pub owner: Option<&'a str>,
    /// What it sent to show that it is the gateway.
    pub proof: Option<&'a str>,
}

/// Whom the gateway has authenticated. `proof` is what it must show, if the deployment asks for it; an empty one is
/// never right.
///
/// # Errors
/// 401 without the proof or an owner: never everybody's data (known fault B091).
pub fn gateway_principal(headers: GatewayHeaders<'_>, proof: Option<&str>) -> Result<Principal, ApiError> {
    let is_gateway = proof.is_none_or(|proof| {
        let given = headers.proof.unwrap_or_default();
        equal_in_constant_time(proof, given)
    });
    match headers.owner.filter(|_| is_gateway).map(str::trim) {
        Some("*") => Ok(Principal::Admin),
        Some(owner) => ResourceId::parse(owner)
            .map(Principal::Owner)
            .map_err(|_| ApiError::unauthenticated()),
        None => Err(ApiError::unauthenticated()),
    }
}

/// The token of a header `Bearer <token>`.
pub fn bearer_token(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Takes as long as the given text is long, whatever the secret is.
fn equal_in_constant_time(secret: &str, given: &str) -> bool {
    let mut difference = secret.len() ^ given.len();
    for (index, byte) in given.bytes().enumerate() {
        let expected = secret.as_bytes().get(index).copied().unwrap_or(0);
        difference |= usize::from(std::hint::black_box(byte ^ expected));
    }
    difference == 0 && !secret.is_empty()
}

/// The caller of a request: the principal, and the owner the request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    principal: Option<Principal>,
    resource: ClientResource,
}

impl Caller {
    /// Joins who was authenticated with the request's resourceId.
    ///
    /// # Errors
    /// 403 when a principal of one owner names another.
    pub fn new(principal: Option<Principal>, resource: ClientResource) -> Result<Self, ApiError> {
        match (&principal, &resource) {
            (Some(Principal::Owner(owner)), ClientResource::Given(named)) if owner != named => {
                Err(ApiError::forbidden())
            }
            _ => Ok(Self { principal, resource }),
        }
    }

    /// Who was authenticated.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// What the request said about the owner; "present but empty" matters to runs (2.2).
    pub fn resource(&self) -> &ClientResource {
        &self.resource
    }

    /// The owner: the principal's, else the one the request names.
    pub fn owner(&self) -> Option<&ResourceId> {
        match (&self.principal, &self.resource) {
            (Some(Principal::Owner(owner)), _) => Some(owner),
            (Some(Principal::Admin) | None, ClientResource::Given(named)) => Some(named),
            (Some(Principal::Admin) | None, ClientResource::Absent | ClientResource::Empty) => None,
        }
    }

    /// The owner a new thread gets.
    ///
    /// # Errors
    /// 400 without one.
    pub fn new_thread_owner(&self) -> Result<&ResourceId, ApiError> {
        self.owner().ok_or_else(ApiError::owner_required)
    }

    /// Whose threads are listed; `None` = nobody's, an empty list: `resourceId` was there but empty.
    ///
    /// # Errors
    /// 400 without an owner: never everybody's threads (known fault B091).
    pub fn list_owner(&self) -> Result<Option<&ResourceId>, ApiError> {
        match (self.owner(), &self.resource) {
            (Some(owner), _) => Ok(Some(owner)),
            (None, ClientResource::Empty) => Ok(None),
            (None, ClientResource::Absent | ClientResource::Given(_)) => Err(ApiError::owner_required()),
        }
    }

    /// Whether this caller may touch a thread, run or call of that owner, known by its id. Without any owner of its own
    /// it may: an unauthenticated caller because the id is the capability, an admin always.
    ///
    /// # Errors
    /// 403
    pub fn may_touch(&self, owner: &ResourceId) -> Result<(), ApiError> {
        match self.owner() {
            Some(own) if own != owner => Err(ApiError::forbidden()),
            Some(_) | None => Ok(()),
        }
    }
}

/// The one owner a request names in several places.
///
/// # Errors
/// 403 when two places name different owners: one of them is not the caller.
pub fn join_resources(first: ClientResource, second: ClientResource) -> Result<ClientResource, ApiError> {
    match (first, second) {
        (ClientResource::Given(one), ClientResource::Given(other)) if one != other => {
            Err(ApiError::forbidden())
        }
        (given @ ClientResource::Given(_), _) | (_, given @ ClientResource::Given(_)) => Ok(given),
        (ClientResource::Empty, _) | (_, ClientResource::Empty) => Ok(ClientResource::Empty),
        (ClientResource::Absent, ClientResource::Absent) => Ok(ClientResource::Absent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ResourceId {
        ResourceId::new(text)
    }

    fn given(text: &str) -> ClientResource {
        ClientResource::Given(id(text))
    }

    fn accepted(token: &str, principal: Principal) -> AcceptedToken {
        AcceptedToken {
            token: token.to_owned(),
            principal,
        }
    }

    #[test]
    fn a_bearer_token_names_its_principal() {
        let ada = Principal::Owner(id("ada"));
        let tokens = [
            accepted("", Principal::Admin),
            accepted("secret-a", ada.clone()),
            accepted("secret-b", Principal::Admin),
            accepted("secret-a", Principal::Admin),
        ];
        let principal = |header: Option<&str>| bearer_principal(&tokens, header.and_then(bearer_token));
        for (header, expected) in [
            ("Bearer secret-a", ada.clone()),
            ("bearer   secret-b ", Principal::Admin),
            ("BEARER secret-a", ada),
        ] {
            assert_eq!(principal(Some(header)), Ok(expected), "{header}");
        }
        for header in [
            None,
            Some(""),
            Some("Bearer"),
            Some("Bearer "),
            Some("secret-a"),
            Some("Basic secret-a"),
            Some("Bearer secret"),
            Some("Bearer secret-aa"),
            Some("Bearer secret-A"),
            Some("Bearer secret-a secret-b"),
        ] {
            assert_eq!(principal(header), Err(ApiError::unauthenticated()), "{header:?}");
        }
        assert!(!format!("{tokens:?}").contains("secret"));
    }

    #[test]
    fn a_gateway_names_the_owner_once_it_has_shown_itself() {
        let said = |owner, proof| GatewayHeaders { owner, proof };
        let ada = || Ok(Principal::Owner(id("ada")));
        let nobody = || Err(ApiError::unauthenticated());
        for (headers, proof, expected) in [
            (said(Some("ada"), None), None, ada()),
            (said(Some(" ada "), Some("x")), None, ada()),
            (said(Some("*"), None), None, Ok(Principal::Admin)),
            (said(None, None), None, nobody()),
            (said(Some(""), None), None, nobody()),
            (said(Some("a\u{7}"), None), None, nobody()),
            (said(Some("ada"), Some("s3cret")), Some("s3cret"), ada()),
            (said(Some("*"), Some("s3cre")), Some("s3cret"), nobody()),
            (said(Some("ada"), None), Some("s3cret"), nobody()),
            (said(Some("ada"), Some("")), Some(""), nobody()),
        ] {
            assert_eq!(
                gateway_principal(headers, proof),
                expected,
                "{headers:?} {proof:?}"
            );
        }
    }

    #[test]
    fn who_may_do_what_is_the_contracts_table() {
        let ada = || Some(Principal::Owner(id("ada")));
        let ok = |owner: &str| Ok(Some(id(owner)));
        let (bad, forbidden) = (ApiError::owner_required, ApiError::forbidden);
        // (principal, resourceId) -> list owner, may touch ada's, may touch bob's
        for (principal, resource, list, ada_s, bob_s) in [
            (None, ClientResource::Absent, Err(bad()), Ok(()), Ok(())),
            (None, ClientResource::Empty, Ok(None), Ok(()), Ok(())),
            (None, given("ada"), ok("ada"), Ok(()), Err(forbidden())),
            (ada(), ClientResource::Absent, ok("ada"), Ok(()), Err(forbidden())),
            (ada(), ClientResource::Empty, ok("ada"), Ok(()), Err(forbidden())),
            (ada(), given("ada"), ok("ada"), Ok(()), Err(forbidden())),
            (
                Some(Principal::Admin),
                ClientResource::Absent,
                Err(bad()),
                Ok(()),
                Ok(()),
            ),
            (
                Some(Principal::Admin),
                ClientResource::Empty,
                Ok(None),
                Ok(()),
                Ok(()),
            ),
            (
                Some(Principal::Admin),
                given("bob"),
                ok("bob"),
                Err(forbidden()),
                Ok(()),
            ),
        ] {
            let case = format!("{principal:?} {resource:?}");
            let caller = Caller::new(principal, resource).unwrap();
            assert_eq!(caller.list_owner().map(|owner| owner.cloned()), list, "{case}");
            assert_eq!(caller.may_touch(&id("ada")), ada_s, "{case}");
            assert_eq!(caller.may_touch(&id("bob")), bob_s, "{case}");
            let new_owner = caller.owner().cloned().ok_or_else(bad);
            assert_eq!(caller.new_thread_owner().cloned(), new_owner, "{case}");
        }
        assert_eq!(Caller::new(ada(), given("bob")), Err(forbidden()));
    }

    #[test]
    fn two_places_must_name_one_owner() {
        let (absent, empty) = (|| ClientResource::Absent, || ClientResource::Empty);
        for (first, second, joined) in [
            (absent(), absent(), Ok(absent())),
            (absent(), empty(), Ok(empty())),
            (empty(), given("a"), Ok(given("a"))),
            (given("a"), absent(), Ok(given("a"))),
            (given("a"), given("a"), Ok(given("a"))),
            (given("a"), given("b"), Err(ApiError::forbidden())),
        ] {
            assert_eq!(join_resources(first, second), joined);
        }
    }
}
