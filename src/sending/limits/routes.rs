//! `/admin/api/limits`, `/me/key`, and what every answer to a sender says of its limits.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::{Limit, NewLimit, Standing};
use crate::{
    accounts::{
        access::{Administrator, AnyKey, Reader},
        api_keys::Key,
    },
    error::Result,
    http::{
        extract::{Fields, Id},
        problem::Problem,
    },
    sending::Sending,
};

pub fn router(sending: Sending) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list, put))
        .routes(routes!(delete))
        .routes(routes!(mine))
        .with_state(sending)
}

/// Tells a sender how its key's limits stand, as
/// [draft-ietf-httpapi-ratelimit-headers](https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/)
/// has it: `r` recipients more go out at once, what comes after them waits; `t` seconds until more
/// is left. A key without limits is told nothing, nor is one whose limits cannot be read: the mail
/// is kept already.
pub async fn tell(sending: &Sending, key: Uuid, response: &mut Response) {
    let limits = match super::of_key(&sending.app, &sending.relays.purse, key).await {
        Ok(limits) => limits,
        Err(error) => return tracing::warn!(%error, "how limits stand could not be told"),
    };
    let policies = limits.iter().map(|it| {
        let per = it.limit.per;
        format!("\"{}\";q={};w={}", per.as_str(), it.limit.most, per.seconds())
    });
    let left = limits.iter().map(|it| {
        let reset = if it.reset > 0 { format!(";t={}", it.reset) } else { String::new() };
        format!("\"{}\";r={}{reset}", it.limit.per.as_str(), it.left)
    });
    let mut say = |name, values: Vec<String>| {
        if let Ok(value) = HeaderValue::try_from(values.join(", "))
            && !values.is_empty()
        {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    };
    say("ratelimit-policy", policies.collect());
    say("ratelimit", left.collect());
}

/// A key, with its limits.
#[derive(Serialize, ToSchema)]
struct MyKey {
    #[serde(flatten)]
    key: Key,
    /// How its limits stand.
    limits: Vec<Standing>,
}

/// The key that asks: what it may do, as whom, from where, until when, and how much.
#[utoipa::path(get, path = "/me/key", tag = "api-keys", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = MyKey), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn mine(State(sending): State<Sending>, AnyKey(actor): AnyKey) -> Result<Json<MyKey>> {
    let limits = super::of_key(&sending.app, &sending.relays.purse, actor.key.id).await?;
    Ok(Json(MyKey { key: actor.key, limits }))
}

/// All limits, with what is left of each.
#[utoipa::path(get, path = "/admin/api/limits", tag = "limits", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = Vec<Standing>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
) -> Result<Json<Vec<Standing>>> {
    super::list(&sending.app).await.map(Json)
}

/// Sets a limit: at most so many recipients a minute, an hour or a day.
///
/// What is over it waits, and goes out by itself.
#[utoipa::path(put, path = "/admin/api/limits", tag = "limits", security(("ApiKeyAuth" = [])),
    request_body = NewLimit,
    responses((status = 200, body = Limit), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn put(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Fields { value, .. }: Fields<NewLimit>,
) -> Result<Json<Limit>> {
    let limit = super::put(&sending, &actor.who(), value).await?;
    Ok(Json(limit))
}

/// Takes a limit away; what waits for it goes out.
#[utoipa::path(delete, path = "/admin/api/limits/{id}", tag = "limits", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn delete(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Id(id): Id,
) -> Result<StatusCode> {
    super::delete(&sending, &actor.who(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}
