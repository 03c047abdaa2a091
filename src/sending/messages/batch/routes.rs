//! `POST /send/batch`.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Answered, MOST, answer::BatchAnswer};
use crate::{
    accounts::access::SendKey,
    error::{Error, Result},
    http::{
        extract::{BodyLimit, JsonBody},
        problem::Problem,
    },
    sending::{
        Sending, limits,
        messages::{
            SendRequest,
            routes::{ATTACHMENTS, idempotency_key},
        },
    },
};

pub fn router(sending: Sending) -> OpenApiRouter {
    let limit = BodyLimit(sending.app.config.http.batch_body_limit);
    OpenApiRouter::new().routes(routes!(send_batch)).layer(Extension(limit)).with_state(sending)
}

/// 1 to 500 messages: a list, or a list under `messages`.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the API description reads it")]
enum BatchRequest {
    Bare(Vec<SendRequest>),
    Named { messages: Vec<SendRequest> },
}

/// Takes 1 to 500 messages at once.
///
/// Each as `POST /send` would, except that a suppressed recipient is left out unless
/// `rejectSuppressed` says otherwise. What is wrong with one does not refuse the others: the answer
/// says of each, in order, whether it was taken (`status` 202 and its `id`).
///
/// 202 when at least one was taken, 422 when none was: then nothing is kept. `Idempotency-Key`
/// stands for the batch as a whole: a replay gives the same answers, another batch under the
/// same key is refused with 409.
#[utoipa::path(post, path = "/send/batch", tag = "sending", security(("ApiKeyAuth" = [])),
    params(("Idempotency-Key" = Option<String>, Header)), request_body = BatchRequest,
    responses((status = 202, body = BatchAnswer), (status = 422, body = BatchAnswer),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn send_batch(
    State(sending): State<Sending>,
    SendKey(actor): SendKey,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response> {
    let key = idempotency_key(&headers)?;
    let requests = messages(body)?;
    let answered = super::send(&sending, &actor, requests, ATTACHMENTS, key).await?;
    let mut response = match answered {
        Answered::Now(answer) if answer.accepted == 0 => {
            (StatusCode::UNPROCESSABLE_ENTITY, Json(answer)).into_response()
        }
        Answered::Now(answer) => (StatusCode::ACCEPTED, Json(answer)).into_response(),
        Answered::Replay(answer) => {
            let replayed = HeaderName::from_static("idempotency-replayed");
            let mut response = (StatusCode::ACCEPTED, Json(answer)).into_response();
            response.headers_mut().insert(replayed, HeaderValue::from_static("true"));
            response
        }
    };
    limits::tell(&sending, actor.key.id, &mut response).await;
    Ok(response)
}

fn messages(body: Value) -> Result<Vec<Value>> {
    let list = match body {
        Value::Object(mut fields) => {
            let list = fields.remove("messages").unwrap_or_default();
            if let Some((name, _)) = fields.into_iter().next() {
                return Err(Error::invalid(name, "unknown field: the body is `messages` alone"));
            }
            list
        }
        list => list,
    };
    match list {
        Value::Array(list) if (1..=MOST).contains(&list.len()) => Ok(list),
        _ => Err(Error::invalid("messages", format!("must be a list of 1 to {MOST} messages"))),
    }
}
