//! Questions to the DNS. That a name or a record is not there is an answer; that nobody answered, or
//! that the server failed, is a fault, and the two are never mixed up.

use std::{net::SocketAddr, time::Duration};

use hickory_resolver::{
    TokioResolver,
    config::{NameServerConfig, ResolverConfig},
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{RData, RecordType},
    },
};

/// How long one question may take, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;

/// What the DNS knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    Found(Vec<T>),
    /// The name exists, but has no such record.
    NoRecord,
    /// The name does not exist.
    NoName,
}

/// Why the DNS told nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsFault {
    #[error("the DNS server answers {0}")]
    Failed(String),
    #[error("no DNS server answers in time")]
    Silent,
    #[error("the question cannot be asked: {0}")]
    Unasked(String),
}

/// Who asks.
pub struct Dns {
    resolver: TokioResolver,
}

impl Dns {
    /// Asks this server; without one, those of the system.
    pub fn new(server: Option<SocketAddr>) -> Result<Self, DnsFault> {
        let unasked = |error: NetError| DnsFault::Unasked(error.to_string());
        let mut builder = match server {
            None => TokioResolver::builder_tokio().map_err(unasked)?,
            Some(server) => {
                let mut named = NameServerConfig::udp_and_tcp(server.ip());
                named.connections.iter_mut().for_each(|it| it.port = server.port());
                let config = ResolverConfig::from_name_servers(vec![named]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
        };
        let options = builder.options_mut();
        options.timeout = PATIENCE;
        options.attempts = ATTEMPTS;
        options.cache_size = 0;
        Ok(Self { resolver: builder.build().map_err(unasked)? })
    }

    /// The texts of a name, each with its parts put together.
    pub async fn texts(&self, name: &str) -> Result<Answer<String>, DnsFault> {
        // The dot at the end: the search list of the system has no say here.
        let name = format!("{}.", name.trim_end_matches('.'));
        let found = match self.resolver.lookup(name, RecordType::TXT).await {
            Ok(found) => found,
            Err(error) => return nothing(error),
        };
        let texts: Vec<String> = found
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                RData::TXT(text) => Some(text.txt_data.concat()),
                _ => None,
            })
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect();
        Ok(if texts.is_empty() { Answer::NoRecord } else { Answer::Found(texts) })
    }
}

fn nothing<T>(error: NetError) -> Result<Answer<T>, DnsFault> {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => Ok(Answer::NoName),
            ResponseCode::NoError => Ok(Answer::NoRecord),
            other => Err(DnsFault::Failed(code(other))),
        },
        NetError::Dns(DnsError::ResponseCode(other)) => Err(DnsFault::Failed(code(other))),
        NetError::Timeout | NetError::NoConnections | NetError::Io(_) => Err(DnsFault::Silent),
        other => Err(DnsFault::Unasked(other.to_string())),
    }
}

/// As the tools of the DNS write it.
fn code(code: ResponseCode) -> String {
    match code {
        ResponseCode::ServFail => "SERVFAIL".to_owned(),
        ResponseCode::Refused => "REFUSED".to_owned(),
        ResponseCode::FormErr => "FORMERR".to_owned(),
        ResponseCode::NotImp => "NOTIMP".to_owned(),
        other => other.to_string(),
    }
}
