//! A test message: a real one, through the door that every message takes.

use serde_json::json;
use uuid::Uuid;

use super::{NO_TEMPLATE, store, wire::TestRequest};
use crate::{
    accounts::access::Actor,
    error::{Error, Issue, Result},
    sending::{
        Sending,
        messages::{SendRequest, accept},
    },
};

/// By which such messages are found.
const TAG: &str = "template-test";

pub(super) async fn send(
    sending: &Sending,
    actor: &Actor,
    id: &str,
    asked: TestRequest,
) -> Result<Uuid> {
    let found = store::find(&sending.app.db, id, asked.version).await?;
    let row = found.filter(|it| it.archived_at.is_none()).ok_or(NO_TEMPLATE)?;
    let request = SendRequest {
        to: asked.to,
        from: asked.from,
        template: json!({ "id": row.template_id, "version": row.version, "data": asked.data }),
        tags: json!([TAG]),
        ..SendRequest::default()
    };
    let message = request.parse(sending.app.now(), 0).map_err(Error::issues).map_err(in_test)?;
    let taken = accept::accept(sending, actor, &message, None).await.map_err(in_test)?;
    Ok(taken.id)
}

/// Paths of a message, as they are in a test's request.
fn in_test(error: Error) -> Error {
    let Error::Invalid { code, issues } = error else { return error };
    let path = |it: Issue| {
        let path = it.path.strip_prefix("template.data").map(|rest| format!("data{rest}"));
        Issue::new(path.unwrap_or(it.path), it.message)
    };
    Error::Invalid { code, issues: issues.into_iter().map(path).collect() }
}
