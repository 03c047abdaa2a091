//! The relays, each tested phase by phase.

use super::{Check, check::asked};
use crate::{app::App, operate::store};

pub async fn checks(app: &App, _has_secret: bool) -> Vec<Check> {
    match asked("relays", store::active_relays(&app.db)).await {
        Ok(0) => vec![Check::fail(
            "relays",
            "no relay is active: nothing can leave",
            "add one: POST /admin/api/smtp-accounts",
        )],
        Ok(n) => vec![Check::ok("relays", format!("{n} active"))],
        Err(check) => vec![check],
    }
}
