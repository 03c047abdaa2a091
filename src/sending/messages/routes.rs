//! `POST /send`, `GET /jobs`, `GET /jobs/{id}`, `POST /jobs/{id}/resolve`.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::{
    RawRequest, SendRequest,
    accept::{self, Taken},
    batch, decisions,
    dry_run::{self, DryRun},
    list::Filter,
    resolve::{self, Resolution},
    store::{
        list, load,
        read::{self, Whole},
    },
    view::Job,
    wait,
};
use crate::{
    accounts::access::{Actor, AnyKey, Sees, SendKey},
    error::{Error, Result},
    http::{
        extract::{BodyLimit, Fields, Id, JsonOrMessage, Query},
        page::{self, Page, PageQuery},
        problem::Problem,
    },
    sending::{Sending, limits, retry::max_attempts},
};

/// Decoded attachments of one message, in bytes.
pub(super) const ATTACHMENTS: usize = 25 * 1024 * 1024;

pub fn router(sending: Sending) -> OpenApiRouter {
    let limit = BodyLimit(sending.app.config.http.body_limit);
    let send = OpenApiRouter::new().routes(routes!(send)).layer(Extension(limit));
    OpenApiRouter::new()
        .merge(send)
        .routes(routes!(list_jobs))
        .routes(routes!(get))
        .routes(routes!(resolve_unknown))
        .with_state(sending.clone())
        .merge(batch::router(sending.clone()))
        .merge(decisions::router(sending))
}

/// How a message is taken.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct SendQuery {
    /// `true`, `1` or nothing: judge the request, say what would be sent, and keep nothing.
    dry_run: Option<String>,
    /// `true`, `1` or nothing: answer with the outcome, if it comes within 30 seconds; a number, at
    /// most 60: within so many seconds. Not together with `dryRun`, which waits for nothing.
    wait: Option<String>,
}

/// What a query says beside a raw message, by the rules of the JSON fields.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only the API description reads it")]
struct RawQuery {
    /// With a raw message: who gets it, whatever its header says; may stand there again. Without it:
    /// all in `To`, `Cc` and `Bcc`.
    rcpt: Option<String>,
    /// With a raw message: one of its tags; may stand there again.
    tag: Option<String>,
    /// With a raw message: its metadata, as JSON.
    metadata: Option<String>,
    /// With a raw message: `high`, `normal` or `bulk`.
    priority: Option<String>,
    /// With a raw message: when it is to go out.
    #[param(rename = "sendAt")]
    send_at: Option<String>,
    /// With a raw message: after which time it is not sent any more.
    #[param(rename = "expiresAt")]
    expires_at: Option<String>,
    /// With a raw message: after how many seconds it is not sent any more.
    ttl: Option<String>,
    /// With a raw message: `hold` or `resend`.
    #[param(rename = "onUnknown")]
    on_unknown: Option<String>,
    /// With a raw message: `true` or `false`.
    #[param(rename = "rejectSuppressed")]
    reject_suppressed: Option<String>,
}

impl SendQuery {
    /// A value that is neither yes nor no is refused: who asks for a dry run must not send.
    fn is_dry(&self) -> Result<bool> {
        let dry = match self.dry_run.as_deref() {
            Some("" | "1" | "true") => true,
            None | Some("0" | "false") => false,
            Some(_) => return Err(Error::invalid("dryRun", "must be true or false")),
        };
        if dry && self.waits()?.is_some() {
            return Err(Error::invalid("wait", "not together with dryRun"));
        }
        Ok(dry)
    }

    fn waits(&self) -> Result<Option<Duration>> {
        wait::asked(self.wait.as_deref())
    }
}

/// What a success of `POST /send` shows, for the API's description.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the API description reads it")]
enum Sent {
    Job(Box<Job>),
    DryRun(DryRun),
}

/// Takes a message. It is kept when the answer goes out, and sent from then on.
///
/// `Idempotency-Key` (at most 256 characters, good for 24 hours): the same request gives the same
/// message, another one under the same key is refused with 409.
///
/// With `?wait` the answer comes with the outcome: 200 when every recipient was accepted, 502 when
/// none was and none will be; else 202 with `ok: false`, at the latest when its time is over, and as
/// soon as a recipient waits for a later try.
///
/// With `?dryRun` nothing is kept or sent, and the answer is 200 with what would be.
///
/// A message that is composed already comes as `message/rfc822`, and goes out as it came: with CRLF
/// at every line end, without `Bcc` and `Return-Path`, with a `Date` and a `Message-ID` if it has none.
/// A `Message-ID` that another message has is refused with 409.
#[utoipa::path(post, path = "/send", tag = "sending", security(("ApiKeyAuth" = [])),
    params(SendQuery, RawQuery, ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 256)), 
    request_body(content((SendRequest = "application/json"), (String = "message/rfc822"))),
    responses((status = 200, body = Sent), (status = 202, body = Job), (status = "4XX", body = Problem),
        (status = 502, body = Job), (status = 503, body = Problem)))]
async fn send(
    State(sending): State<Sending>,
    SendKey(actor): SendKey,
    Query(query): Query<SendQuery>,
    Query(all): Query<Vec<(String, String)>>,
    headers: HeaderMap,
    body: JsonOrMessage,
) -> Result<Response> {
    let (dry, patience) = (query.is_dry()?, query.waits()?);
    let key = idempotency_key(&headers)?;
    let now = sending.app.now();
    let message = match body {
        JsonOrMessage::Json(body) => serde_json::from_value::<SendRequest>(body)
            .map_err(|error| Error::invalid("", error.to_string()))?
            .parse(now, ATTACHMENTS),
        JsonOrMessage::Message(bytes) => RawRequest { bytes, query: all }.parse(now),
    };
    let message = message.map_err(Error::issues)?;
    if dry {
        return Ok(Json(dry_run::dry_run(&sending, &actor, &message).await?).into_response());
    }
    let taken = accept::accept(&sending, &actor, &message, key).await?;
    let replay = taken.replay;
    let job = outcome(&sending, &actor, taken, patience).await?;
    let (status, ok) = match patience.map(|_| wait::Ended::of(&job)) {
        None => (StatusCode::ACCEPTED, true),
        Some(wait::Ended::Accepted) => (StatusCode::OK, true),
        Some(wait::Ended::Dead) => (StatusCode::BAD_GATEWAY, false),
        Some(wait::Ended::Open) => (StatusCode::ACCEPTED, false),
    };
    let mut answer = serde_json::to_value(job).unwrap_or_default();
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("ok".to_owned(), ok.into());
        if !message.ignored.is_empty() {
            answer.insert("ignored".to_owned(), message.ignored.clone().into());
        }
    }
    let mut response = (status, Json(answer)).into_response();
    if replay {
        let name = HeaderName::from_static("idempotency-replayed");
        response.headers_mut().insert(name, HeaderValue::from_static("true"));
    }
    limits::tell(&sending, actor.key.id, &mut response).await;
    Ok(response)
}

/// What a sender is answered. A message that was just kept is never answered by an error: whoever
/// got one would send it again.
async fn outcome(
    sending: &Sending,
    actor: &Actor,
    taken: Taken,
    patience: Option<Duration>,
) -> Result<Job> {
    let (seen, fresh) = match (patience, taken.fresh) {
        (None, Some(fresh)) => return Ok(job(sending, *fresh)),
        (None, None) => (Ok(()), None),
        (Some(patience), fresh) => (wait::wait(sending, taken.id, patience).await, fresh),
    };
    let seen = match seen {
        Ok(()) => one(sending, Sees::Own(actor.key.id), taken.id).await,
        Err(error) => Err(error),
    };
    match (seen, fresh) {
        (Err(error), Some(fresh)) => {
            tracing::warn!(message.id = %taken.id, %error, "the outcome could not be waited for");
            Ok(job(sending, *fresh))
        }
        (seen, _) => seen,
    }
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=256).contains(&text.len()));
    text.map(Some)
        .ok_or_else(|| Error::invalid("Idempotency-Key", "1 to 256 printable ASCII characters"))
}

/// Messages, newest first; without their content.
///
/// The `Link` header names the next page, with the same filters.
#[utoipa::path(get, path = "/jobs", tag = "sending", security(("ApiKeyAuth" = [])), params(PageQuery, Filter),
    responses((status = 200, body = Vec<Job>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list_jobs(
    State(sending): State<Sending>,
    AnyKey(actor): AnyKey,
    Query(page): Query<PageQuery>,
    Query(filter): Query<Filter>,
    uri: Uri,
) -> Result<Page<Job>> {
    let (limit, filter) = (page.limit()?, filter.checked()?);
    let db = &sending.app.db;
    let rows = list::list(db, actor.sees(), &filter, page.cursor, limit + 1).await?;
    let more = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    let most = max_attempts(sending.app.config.sending.retry_window);
    let items: Vec<Job> = rows
        .into_iter()
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .map(|row| Job::new(row, most))
        .collect();
    let next = items.last().filter(|_| more).map(|it| it.id);
    Ok(Page { items, path: "/jobs", limit, next, filters: page::filters(&uri) })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Include {
    /// `content`: html, text and attachments too.
    #[param(inline)]
    include: Option<Included>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum Included {
    Content,
}

/// One message: its recipients, and every attempt.
#[utoipa::path(get, path = "/jobs/{id}", tag = "sending", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path), Include),
    responses((status = 200, body = Job), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn get(
    State(sending): State<Sending>,
    AnyKey(actor): AnyKey,
    Id(id): Id,
    Query(include): Query<Include>,
) -> Result<Json<Job>> {
    let job = one(&sending, actor.sees(), id).await?;
    match include.include {
        None => Ok(Json(job)),
        Some(Included::Content) => {
            let bytes = load::content(&sending.app.db, id).await?.concat();
            Ok(Json(job.with_content(&bytes)))
        }
    }
}

/// Says what became of recipients of whom nothing is known.
#[utoipa::path(post, path = "/jobs/{id}/resolve", tag = "sending", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)), request_body = Resolution,
    responses((status = 200, body = Job), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn resolve_unknown(
    State(sending): State<Sending>,
    AnyKey(actor): AnyKey,
    Id(id): Id,
    Fields { value, .. }: Fields<Resolution>,
) -> Result<Json<Job>> {
    resolve::resolve(&sending.app, &actor, id, &value).await?;
    one(&sending, actor.sees(), id).await.map(Json)
}

pub(super) async fn one(sending: &Sending, sees: Sees, id: Uuid) -> Result<Job> {
    let whole = read::whole(&sending.app.db, sees, id).await?.ok_or(Error::NotFound("Job"))?;
    Ok(job(sending, whole))
}

fn job(sending: &Sending, whole: Whole) -> Job {
    let most = max_attempts(sending.app.config.sending.retry_window);
    Job::new(whole.row, most).with_details(whole.recipients, whole.attempts, whole.said)
}
