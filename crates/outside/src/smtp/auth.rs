//! AUTH PLAIN and AUTH LOGIN (RFC 4954, RFC 4616). The secret goes to the wire and nowhere else.

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret, SecretString};

use super::{AuthMechanism, Capabilities, Credentials, Fault, FaultKind, Phase, wire::Wire};

pub(super) async fn authenticate(
    wire: &mut Wire,
    credentials: &Credentials,
    capabilities: &Capabilities,
) -> Result<(), Fault> {
    if has_nul(&credentials.user) || has_nul(credentials.password.expose_secret()) {
        return Err(Fault::new(Phase::Auth, FaultKind::Malformed("a NUL in the credentials")));
    }
    match capabilities.auth.first() {
        None => Err(Fault::new(Phase::Auth, FaultKind::AuthNotOffered)),
        Some(AuthMechanism::Plain) => {
            let command = format!("AUTH PLAIN {}", plain(credentials).expose_secret());
            step(wire, &SecretString::from(command), DONE).await
        }
        Some(AuthMechanism::Login) => {
            step(wire, &SecretString::from("AUTH LOGIN"), GO_ON).await?;
            step(wire, &encoded(&credentials.user), GO_ON).await?;
            step(wire, &encoded(credentials.password.expose_secret()), DONE).await
        }
    }
}

const GO_ON: u16 = 334;
const DONE: u16 = 235;

async fn step(wire: &mut Wire, line: &SecretString, expected: u16) -> Result<(), Fault> {
    let reply = wire.ask(Phase::Auth, line.expose_secret()).await?;
    if reply.code == expected { Ok(()) } else { Err(Fault::reply(Phase::Auth, reply)) }
}

fn plain(credentials: &Credentials) -> SecretString {
    let password = credentials.password.expose_secret();
    let message = SecretString::from(format!("\0{}\0{password}", credentials.user));
    encoded(message.expose_secret())
}

fn encoded(text: &str) -> SecretString {
    SecretString::from(BASE64_STANDARD.encode(text))
}

fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_the_example_of_the_rfc() {
        let tim = Credentials { user: "tim".into(), password: "tanstaaftanstaaf".into() };
        assert_eq!(plain(&tim).expose_secret(), "AHRpbQB0YW5zdGFhZnRhbnN0YWFm");
    }

    #[test]
    fn a_secret_is_never_shown() {
        let tim = Credentials { user: "tim".into(), password: "tanstaaf".into() };
        assert!(!format!("{tim:?}").contains("tanstaaf"));
        assert!(!format!("{:?}", plain(&tim)).contains("AHRpb"));
    }
}
