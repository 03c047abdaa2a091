//! `postroom rekey`.

use anyhow::Context as _;

use crate::{config::Config, database, sending::relays};

/// Seals everything again with the first key of the ring, in one transaction. What cannot be opened
/// stops it, and nothing is changed.
pub async fn rekey(config: Config) -> anyhow::Result<()> {
    let pools = database::open(&config.database).await?;
    let ring = &config.secrets.ring;
    let mut tx = pools.api.begin().await?;
    // Whoever adds a sealed column adds it here.
    database::reseal_check(&mut tx, ring).await?;
    let (again, all) = relays::reseal(&mut tx, ring).await.context("nothing was changed")?;
    tx.commit().await.context("the values could not be written, and are as they were")?;
    println!(
        "{again} of {all} relay passwords and the check value are sealed with the key {:?} now",
        ring.sealing_id()
    );
    println!("keys behind it in the ring seal nothing any more, and can be taken away");
    Ok(())
}
