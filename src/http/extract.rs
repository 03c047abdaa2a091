//! Bodies, queries and paths, with our own words when they cannot be read.

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest, FromRequestParts, Path, Request},
    http::{Uri, header, request::Parts},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use crate::error::{Error, Result};

/// How many bytes a body may have on this route. Set as an extension by the route's layer;
/// 256 KiB elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimit(pub usize);

const SMALL: usize = 256 * 1024;

/// A JSON object or array as it came. An empty body counts as `{}`.
pub struct JsonBody(pub Value);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Error;

    async fn from_request(request: Request, _state: &S) -> Result<Self> {
        let essence = essence(&request);
        let bytes = read(request).await?;
        if bytes.is_empty() {
            return Ok(Self(Value::Object(serde_json::Map::new())));
        }
        if essence.as_deref() != Some("application/json") {
            return Err(Error::UnsupportedMedia(essence.unwrap_or("none given".to_owned())));
        }
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
            bad_json(format!("not JSON: line {}, column {}", error.line(), error.column()))
        })?;
        if !value.is_object() && !value.is_array() {
            return Err(bad_json("the body must be an object or an array".to_owned()));
        }
        Ok(Self(value))
    }
}

/// A JSON body, or a message of RFC 5322 as it came.
pub enum JsonOrMessage {
    Json(Value),
    /// `message/rfc822`, or `message/global` (RFC 6532), which is the same beyond ASCII.
    Message(Bytes),
}

impl<S: Send + Sync> FromRequest<S> for JsonOrMessage {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        if matches!(essence(&request).as_deref(), Some("message/rfc822" | "message/global")) {
            return read(request).await.map(Self::Message);
        }
        JsonBody::from_request(request, state).await.map(|JsonBody(body)| Self::Json(body))
    }
}

/// The type of a body, without its parameters.
fn essence(request: &Request) -> Option<String> {
    let declared = request.headers().get(header::CONTENT_TYPE)?;
    let declared = declared.to_str().unwrap_or("unreadable").to_ascii_lowercase();
    Some(declared.split(';').next()?.trim().to_owned())
}

async fn read(request: Request) -> Result<Bytes> {
    let limit = request.extensions().get::<BodyLimit>().map_or(SMALL, |limit| limit.0);
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(Error::TooLarge { limit });
    }
    to_bytes(request.into_body(), limit).await.map_err(|error| unread(&error, limit))
}

fn unread(error: &axum::Error, limit: usize) -> Error {
    let over = std::error::Error::source(error)
        .is_some_and(|source| source.to_string().contains("length limit"));
    if over { Error::TooLarge { limit } } else { bad_json("the body ended early".to_owned()) }
}

fn bad_json(message: String) -> Error {
    Error::Invalid { code: "BAD_JSON", issues: vec![crate::error::Issue::new("", message)] }
}

/// A JSON body that fits `T`; what does not fit is said with its path. Fields that `T` does not
/// know are ignored and named in [`Fields::ignored`], where the contract wants them accepted.
pub struct Fields<T> {
    pub value: T,
    pub ignored: Vec<String>,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Fields<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let JsonBody(body) = JsonBody::from_request(request, state).await?;
        if !body.is_object() {
            return Err(bad_json("the body must be an object".to_owned()));
        }
        let mut ignored = Vec::new();
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&body, &mut track);
        let value = serde_ignored::deserialize(tracked, |path| ignored.push(path.to_string()));
        let value = value.map_err(|error| {
            let path = track.path().to_string();
            Error::invalid(if path == "." { String::new() } else { path }, error.to_string())
        })?;
        Ok(Self { value, ignored })
    }
}

/// What a success that took contract fields adds: the names it did not know.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct WithIgnored<T> {
    #[serde(flatten)]
    pub body: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// A query string that fits `T`.
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self> {
        parse_query(&parts.uri).map(Self)
    }
}

fn parse_query<T: DeserializeOwned>(uri: &Uri) -> Result<T> {
    axum::extract::Query::<T>::try_from_uri(uri)
        .map(|query| query.0)
        .map_err(|error| Error::invalid("query", error.body_text()))
}

/// What a path names by its id or by its own word for itself. One that cannot be read names nothing.
pub struct IdOrName(pub String);

impl<S: Send + Sync> FromRequestParts<S> for IdOrName {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        // The database keeps no NUL, not even to compare it.
        let readable = text.ok().filter(|Path(text)| !text.contains('\0'));
        readable.map(|Path(text)| Self(text)).ok_or(Error::NotFound("Resource"))
    }
}

/// The id in a path. One that is no UUID names nothing: 404, as an unknown one.
pub struct Id(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Error::NotFound("Resource"))?;
        text.parse().map(Self).map_err(|_| Error::NotFound("Resource"))
    }
}
