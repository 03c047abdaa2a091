//! Why the queue could not do what it was asked.

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the owner of a job or of a batch answered, in the owner's own words.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database refused")]
    Database(#[from] sqlx::Error),
    /// Nobody writes any more.
    #[error("this process is stopping")]
    Stopping,
    /// The one who wrote, or whom a job belongs to, failed.
    #[error("what was handed in could not be written")]
    Refused(#[source] Refusal),
}
