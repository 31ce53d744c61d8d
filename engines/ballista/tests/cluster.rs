//! Queries on a scheduler and two executors, each a process, against one process without
//! lightfoot's functions; and with an executor killed in the middle.

use datafusion::prelude::SessionContext;
use lightfoot_ballista::{demo, session, Cluster, ClusterOptions};
use std::path::Path;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_lightfoot-ballista");

/// Longer than any machine is busy: nothing is killed in these tests.
const SILENCE: Duration = Duration::from_secs(600);
/// After so long a killed executor's tasks run elsewhere.
const SHORT_SILENCE: Duration = Duration::from_secs(15);

fn cluster(silence: Duration) -> Cluster {
    Cluster::start(PROGRAM.as_ref(), &ClusterOptions { executors: 2, silence }).unwrap()
}

async fn alone(path: &str) -> SessionContext {
    let context = SessionContext::new();
    context.register_parquet("logs", path, Default::default()).await.unwrap();
    context
}

async fn on(cluster: &Cluster, path: &str) -> SessionContext {
    let context = session(&cluster.url()).await.unwrap();
    context.register_parquet("logs", path, Default::default()).await.unwrap();
    context
}

async fn text(context: &SessionContext, sql: &str) -> String {
    context.sql(sql).await.unwrap().to_string().await.unwrap()
}

/// Whether there is a file with bytes in a folder or below.
fn has_results(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => has_results(&entry.path()),
        Ok(found) => found.len() > 0,
        Err(_) => false,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_answers_as_one_process_does() {
    let folder = tempfile::tempdir().unwrap();
    demo::write_logs(folder.path(), 6, 3000).await.unwrap();
    let path = folder.path().display().to_string();
    let cluster = cluster(SILENCE);
    let (alone, cluster_session) = (alone(&path).await, on(&cluster, &path).await);
    for sql in demo::QUERIES {
        let plan = cluster_session.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        assert!(plan.to_string().contains("lightfoot_"), "{plan}");
        assert_eq!(text(&cluster_session, sql).await, text(&alone, sql).await, "{sql}");
    }
    // Both executors took part.
    assert!((0..cluster.executors()).all(|executor| has_results(cluster.folder(executor))));
}

/// A client without the functions: the scheduler has the rule, executors have the functions.
#[tokio::test(flavor = "multi_thread")]
async fn plain_clients_are_answered() {
    use ballista::prelude::SessionContextExt;
    let folder = tempfile::tempdir().unwrap();
    demo::write_logs(folder.path(), 2, 1000).await.unwrap();
    let path = folder.path().display().to_string();
    let cluster = cluster(SILENCE);
    let plain = SessionContext::remote(&cluster.url()).await.unwrap();
    plain.register_parquet("logs", &path, Default::default()).await.unwrap();
    let sql = demo::QUERIES[0];
    assert_eq!(text(&plain, sql).await, text(&alone(&path).await, sql).await);
}

/// Starts a query, kills an executor as soon as it has done a task, and removes what it had done.
/// `None` when the query was over first.
async fn answer_without_an_executor(path: &str, sql: &'static str) -> Option<String> {
    let mut cluster = cluster(SHORT_SILENCE);
    let context = on(&cluster, path).await;
    let query = tokio::spawn(async move { text(&context, sql).await });
    while !has_results(cluster.folder(0)) && !query.is_finished() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    cluster.kill_executor(0).unwrap();
    assert!(!cluster.folder(0).exists());
    if query.is_finished() {
        return None;
    }
    Some(query.await.unwrap())
}

/// An executor is killed while a query runs, and what it had done is lost with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_executor_loses_nothing() {
    let sql =
        "SELECT regexp_replace(line, '[0-9]', '#', 'g') AS shape, count(*) AS rows, min(number) AS first \
         FROM logs WHERE line ~ 'user=[a-z]+' GROUP BY shape ORDER BY first LIMIT 100";
    // On a machine that lets this process wait, the query may be over first: then a longer one.
    for files in [24, 48, 96, 192] {
        let folder = tempfile::tempdir().unwrap();
        demo::write_logs(folder.path(), files, 20_000).await.unwrap();
        let path = folder.path().display().to_string();
        if let Some(found) = answer_without_an_executor(&path, sql).await {
            assert_eq!(found, text(&alone(&path).await, sql).await);
            return;
        }
    }
    panic!("no query was running when its executor was killed");
}
