//! With a real server, in a folder of the test's own.

use super::*;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use sqlx::{Connection as _, PgConnection};

impl Cluster {
    /// What a SIGKILL of Postroom leaves: a running server, no lock, nobody who waits for it.
    fn abandon(mut self) {
        self.stopped = true;
    }

    fn pid(&self) -> u32 {
        PidFile::read(&self.data).unwrap().pid
    }
}

async fn database_name(cluster: &Cluster) -> String {
    let mut connection = PgConnection::connect(&cluster.url()).await.unwrap();
    sqlx::query_scalar("select current_database()::text").fetch_one(&mut connection).await.unwrap()
}

async fn execute(cluster: &Cluster, statement: &'static str) {
    let mut connection = PgConnection::connect(&cluster.url()).await.unwrap();
    sqlx::query(statement).execute(&mut connection).await.unwrap();
}

#[tokio::test]
async fn a_cluster_starts_from_nothing_stops_and_keeps_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path()).unwrap();
    assert_eq!(database_name(&cluster).await, "postroom");
    execute(&cluster, "create table kept (n int)").await;
    let socket_folder = cluster.socket_folder.clone();
    cluster.stop().unwrap();
    assert!(!socket_folder.exists());

    let again = Cluster::start(folder.path()).unwrap();
    execute(&again, "insert into kept values (1)").await;
    again.stop().unwrap();
}

#[tokio::test]
async fn a_second_postroom_is_kept_out_while_the_first_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let first = Cluster::start(folder.path()).unwrap();
    let error = Cluster::start(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("another Postroom uses the data folder"), "{error}");
    first.stop().unwrap();
}

#[tokio::test]
async fn a_server_left_by_a_killed_postroom_is_taken_over_and_stopped_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let first = Cluster::start(folder.path()).unwrap();
    let (pid, data) = (first.pid(), first.data.clone());
    first.abandon();

    let second = Cluster::start(folder.path()).unwrap();
    assert_eq!(second.pid(), pid);
    assert_eq!(database_name(&second).await, "postroom");
    second.stop().unwrap();
    assert!(PidFile::read(&data).is_none());
}

#[tokio::test]
async fn a_killed_server_and_a_number_used_again_do_not_hinder_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let first = Cluster::start(folder.path()).unwrap();
    execute(&first, "create table kept (n int)").await;
    let mut first = first;
    let mut child = first.child.take().unwrap();
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    let pid_file = PidFile::path(&first.data);
    let left = fs::read_to_string(&pid_file).unwrap();
    let mine = left.replacen(&child.id().to_string(), &std::process::id().to_string(), 1);
    fs::write(&pid_file, mine).unwrap();
    first.abandon();

    let second = Cluster::start(folder.path()).unwrap();
    execute(&second, "insert into kept values (1)").await;
    second.stop().unwrap();
}

#[tokio::test]
async fn an_interrupted_first_run_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("postgres.new")).unwrap();
    fs::write(folder.path().join("postgres.new/PG_VERSION"), "15").unwrap();
    let cluster = Cluster::start(folder.path()).unwrap();
    assert_eq!(database_name(&cluster).await, "postroom");
    cluster.stop().unwrap();
}

#[test]
fn data_of_another_version_are_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("postgres")).unwrap();
    fs::write(folder.path().join("postgres/PG_VERSION"), "9\n").unwrap();
    let error = Cluster::start(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("the database was made by PostgreSQL 9"), "{error}");
}
