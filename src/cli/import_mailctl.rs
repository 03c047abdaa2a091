//! `postroom import-mailctl`.

use std::path::PathBuf;

use crate::{
    audit::Who,
    config::Config,
    database, serve,
    transfer::mailctl::{self, Report},
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The SQLite file; it is only read. Stop mailctl first, or copy the file with its -wal beside it.
    file: PathBuf,
    /// Say what would be taken over, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// One JSON document instead of the table.
    #[arg(long)]
    json: bool,
}

/// Takes over what can be, and says what became of each row.
pub async fn import(config: Config, args: Args) -> anyhow::Result<()> {
    let source = mailctl::read(&args.file).await?;
    let pools = database::open(&config.database).await?;
    if !args.dry_run {
        database::migrate(&pools.workers).await?;
    }
    let app = serve::app(config, &pools);
    let report = mailctl::import(&app, &Who::command_line(), source, args.dry_run).await?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", table(&report, args.dry_run));
    }
    Ok(())
}

fn table(report: &Report, dry_run: bool) -> String {
    let mut text = String::new();
    for it in &report.tables {
        text += &format!(
            "{:<16} {:>6} found  {:>6} taken over  {:>6} there already  {:>6} left out\n",
            it.table,
            it.found,
            it.taken,
            it.known,
            it.left_out.len()
        );
        for row in &it.left_out {
            text += &format!("    {}: {}\n", row.name, row.why);
        }
        for row in &it.notes {
            text += &format!("    note: {}: {}\n", row.name, row.why);
        }
    }
    for it in &report.not_yet {
        text += &format!(
            "{:<16} {:>6} found, not imported yet: Postroom has no place for them\n",
            it.table, it.rows
        );
        it.names.iter().for_each(|name| text += &format!("    {name}\n"));
    }
    if dry_run {
        text += "nothing was changed\n";
    }
    text
}
