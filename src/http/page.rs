//! Lists by cursor: a bare array, and the next page in a `Link` header (RFC 8288).

use axum::{
    Json,
    http::{HeaderValue, Uri, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use uuid::Uuid;

use crate::error::{Error, Result};

/// How a list is asked for: newest first, `limit` a page, from behind `cursor` on.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// At most this many items, 1 to 100.
    #[param(minimum = 1, maximum = 100, default = 100)]
    pub limit: Option<i64>,
    /// The `cursor` of the `Link` header of the page before.
    pub cursor: Option<Uuid>,
}

impl PageQuery {
    pub fn limit(&self) -> Result<i64> {
        match self.limit.unwrap_or(100) {
            limit @ 1..=100 => Ok(limit),
            _ => Err(Error::invalid("limit", "must be from 1 to 100")),
        }
    }
}

/// One page; `next` is the cursor of the page behind it.
pub struct Page<T> {
    pub items: Vec<T>,
    pub path: &'static str,
    pub limit: i64,
    pub next: Option<Uuid>,
    /// The rest of the query, already encoded: it goes along to the next page.
    pub filters: String,
}

/// The query of a request as it came, but for the place in the list: what narrows this page
/// narrows the next. A URI has no `>` in it, so it cannot end the link.
pub fn filters(uri: &Uri) -> String {
    let pairs = uri.query().unwrap_or_default().split('&');
    let kept = pairs.filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        !matches!(name, "" | "cursor" | "limit")
    });
    kept.map(|pair| format!("&{pair}")).collect()
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.items).into_response();
        if let Some(next) = self.next {
            let target =
                format!("{}?cursor={next}&limit={}{}", self.path, self.limit, self.filters);
            link(&mut response, &target);
        }
        response
    }
}

/// Says where the next page is; `?…` alone is on the same path.
pub fn link(response: &mut Response, target: &str) {
    if let Ok(link) = HeaderValue::try_from(format!("<{target}>; rel=\"next\"")) {
        response.headers_mut().insert(header::LINK, link);
    }
}
