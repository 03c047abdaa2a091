//! The access rules. A handler's signature is its rule: [`Administrator`], [`Reader`], [`SendKey`]
//! and [`AnyKey`] cannot be built without the right.
//!
//! Every key is checked the same way and refused with the same 401, whatever is wrong with it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::{
    extract::{ConnectInfo, FromRef, FromRequestParts},
    http::{HeaderMap, header, request::Parts},
};
use uuid::Uuid;

use super::api_keys::{self, Key, Scope};
use crate::{
    app::App,
    audit::Who,
    error::{Error, Result},
    http::layers::RequestId,
};

/// Whoever holds a good key.
#[derive(Debug, Clone)]
pub struct Actor {
    pub key: Key,
    pub source: IpAddr,
    pub request_id: Option<String>,
}

impl Actor {
    pub fn has(&self, scope: Scope) -> bool {
        self.key.scopes.contains(&scope)
    }

    /// Whose messages this actor may see: all, or those of one key.
    pub fn sees(&self) -> Sees {
        match self.has(Scope::Admin) || self.has(Scope::Read) {
            true => Sees::All,
            false => Sees::Own(self.key.id),
        }
    }

    /// Whose messages this actor may decide about: all, or those that its key sends. To see is not
    /// to decide.
    pub fn decides(&self) -> Result<Sees> {
        match (self.has(Scope::Admin), self.has(Scope::Send)) {
            (true, _) => Ok(Sees::All),
            (false, true) => Ok(Sees::Own(self.key.id)),
            (false, false) => Err(Error::missing_scope(Scope::Send.as_str())),
        }
    }

    pub fn who(&self) -> Who {
        Who {
            name: format!("key:{}", self.key.prefix),
            api_key_id: Some(self.key.id),
            source: Some(self.source),
            request_id: self.request_id.clone(),
        }
    }

    fn needs(self, scopes: &[Scope]) -> Result<Self> {
        if scopes.iter().any(|scope| self.has(*scope)) {
            return Ok(self);
        }
        Err(Error::missing_scope(scopes.first().map_or("", |scope| scope.as_str())))
    }
}

/// What of the messages an actor may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    All,
    Own(Uuid),
}

impl Sees {
    /// For SQL: null sees all.
    pub fn key(self) -> Option<Uuid> {
        match self {
            Self::All => None,
            Self::Own(key) => Some(key),
        }
    }
}

/// May change the configuration.
pub struct Administrator(pub Actor);
/// May look at everything.
pub struct Reader(pub Actor);
/// May send.
pub struct SendKey(pub Actor);
/// Holds a good key of any scope.
pub struct AnyKey(pub Actor);

macro_rules! rule {
    ($name:ident, $actor:ident => $check:expr) => {
        impl<S> FromRequestParts<S> for $name
        where
            App: FromRef<S>,
            S: Send + Sync,
        {
            type Rejection = Error;

            async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
                let $actor = identify(parts, &App::from_ref(state)).await?;
                $check.map($name)
            }
        }
    };
}

rule!(Administrator, actor => actor.needs(&[Scope::Admin]));
rule!(Reader, actor => actor.needs(&[Scope::Read, Scope::Admin]));
rule!(SendKey, actor => actor.needs(&[Scope::Send]));
rule!(AnyKey, actor => Ok(actor));

async fn identify(parts: &Parts, app: &App) -> Result<Actor> {
    let presented = presented_key(&parts.headers).ok_or(Error::Unauthenticated)?;
    let source = source(parts, app.config.http.trust_proxy.into());
    let key = api_keys::authenticate(app, presented).await?;
    if !key.admits_source(source) {
        return Err(Error::forbidden(
            "SOURCE_NOT_ALLOWED",
            "Forbidden: this key may not be used from here",
        ));
    }
    let request_id = parts.extensions.get::<RequestId>().map(|id| id.0.clone());
    Ok(Actor { key, source, request_id })
}

/// `X-Api-Key: …`, or `Authorization: Bearer …`.
fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let own = headers.get("x-api-key").and_then(|it| it.to_str().ok());
    own.or_else(|| {
        let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    })
}

/// The peer; behind `hops` trusted proxies, the address that the outermost of them saw. The list is read
/// from its right end, where our own proxies write: what a client puts on its left is not believed.
fn source(parts: &Parts, hops: usize) -> IpAddr {
    let peer = parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::from([0, 0, 0, 0]), |info| info.0.ip());
    if hops == 0 {
        return peer.to_canonical();
    }
    let forwarded: Vec<&str> = parts
        .headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    match forwarded.len().checked_sub(hops) {
        // No header: nobody stands between.
        None if forwarded.is_empty() => peer.to_canonical(),
        None => NOWHERE,
        Some(at) => address(forwarded[at]).map_or(NOWHERE, |seen| seen.to_canonical()),
    }
}

/// The address of whom our proxy cannot name: it lies in no network that a key is bound to.
const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// `192.0.2.1`, `2001:db8::1`, either with a port, the latter in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let with_port = || text.parse::<SocketAddr>().ok().map(|it| it.ip());
    bare.unwrap_or(text).parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(forwarded: &[&str]) -> Parts {
        let mut request = axum::http::Request::builder();
        for value in forwarded {
            request = request.header("x-forwarded-for", *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 9], 1))));
        parts
    }

    #[test]
    fn the_source_is_what_the_outermost_trusted_proxy_saw() {
        let spoofed = ["6.6.6.6, 192.0.2.7", "10.0.0.1"];
        assert_eq!(source(&parts(&spoofed), 0), IpAddr::from([10, 0, 0, 9]));
        assert_eq!(source(&parts(&spoofed), 1), IpAddr::from([10, 0, 0, 1]));
        assert_eq!(source(&parts(&spoofed), 2), IpAddr::from([192, 0, 2, 7]));
        assert_eq!(source(&parts(&[]), 1), IpAddr::from([10, 0, 0, 9]), "no header: the peer");
        for text in
            ["::ffff:192.0.2.1", "192.0.2.1:443", "[::ffff:192.0.2.1]", "[::ffff:192.0.2.1]:443"]
        {
            assert_eq!(source(&parts(&[text]), 1), IpAddr::from([192, 0, 2, 1]), "{text}");
        }
        for text in ["unknown", "192.0.2.1, garbage", ""] {
            assert_eq!(
                source(&parts(&[text]), 1),
                NOWHERE,
                "{text:?} is never the proxy's address"
            );
        }
        assert_eq!(source(&parts(&["192.0.2.7"]), 2), NOWHERE, "fewer hops than there must be");
    }
}
