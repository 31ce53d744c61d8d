//! Ballista with lightfoot's functions: a scheduler and executors that know them, sessions that use
//! them, and a cluster of processes on one machine.
//!
//! Ballista sends functions by name: every process that plans or runs a query has to know them.
//! Here the scheduler has the functions and the rule (so that a client without them gains as well),
//! and executors have the functions. A query is SQL as anywhere:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use lightfoot_ballista::{session, Cluster, ClusterOptions};
//!
//! let cluster = Cluster::start("target/release/lightfoot-ballista".as_ref(), &ClusterOptions::default())?;
//! let session = session(&cluster.url()).await?;
//! session.register_parquet("logs", "/data/logs", Default::default()).await?;
//! session.sql("SELECT count(*) FROM logs WHERE line ~ '[0-9]{3} ms'").await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An executor that dies loses nothing: the scheduler notices that its heartbeats stay out, and has
//! its tasks, and those whose results lay with it, run again elsewhere.
//!
//! **Leaves out** a scheduler of our own, transport security and object stores: what Ballista's own
//! programs offer is configured there, with [`session_state`] and [`function_registry`] for their
//! overrides.

mod cluster;
pub mod demo;

pub use cluster::{Cluster, ClusterOptions};

use ballista::prelude::SessionContextExt;
use ballista_core::error::BallistaError;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{start_executor_process, ExecutorProcessConfig};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::common::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use lightfoot_datafusion::WithLightfoot;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How often an executor says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// An executor that was silent for so long is dead, unless something else is asked for.
pub const SILENCE: Duration = Duration::from_secs(30);

/// The state of a scheduler's sessions: Ballista's own with the functions and the rule. For
/// `SchedulerConfig::override_session_builder`.
///
/// # Errors
/// Ballista cannot build its state.
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    Ok(SessionStateBuilder::new_from_existing(default_session_builder(config)?).with_lightfoot().build())
}

/// The functions of an executor: Ballista's own and ours. For
/// `ExecutorProcessConfig::override_function_registry`.
pub fn function_registry() -> BallistaFunctionRegistry {
    let mut registry = BallistaFunctionRegistry::default();
    let functions = lightfoot_datafusion::functions().into_iter();
    registry.scalar_functions.extend(functions.map(|function| (function.name().to_owned(), function)));
    registry
}

/// A client's session with a scheduler, with the functions and the rule.
///
/// # Errors
/// The address is none.
pub async fn session(url: &str) -> Result<SessionContext> {
    let context = SessionContext::remote(url).await?;
    lightfoot_datafusion::register(&context);
    Ok(context)
}

/// Runs a scheduler until the process ends. An executor that was silent for `silence` is dead; when
/// none is left, queries fail after four times as long.
///
/// # Errors
/// The scheduler cannot start, or its service ends.
pub async fn serve_scheduler(
    listener: TcpListener,
    silence: Duration,
) -> std::result::Result<(), BallistaError> {
    let address = listener.local_addr()?;
    let config = SchedulerConfig {
        external_host: address.ip().to_string(),
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        executor_timeout_seconds: silence.as_secs(),
        expire_dead_executor_interval_seconds: HEARTBEAT.as_secs(),
        no_executors_grace_period_seconds: 4 * silence.as_secs(),
        override_session_builder: Some(Arc::new(session_state)),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    start_grpc_service_with_listener(listener, scheduler).await
}

/// An executor: where it listens and what it has.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The scheduler's address.
    pub scheduler: SocketAddr,
    /// The port for results of tasks, on the loopback address.
    pub port: u16,
    /// The port for the scheduler's messages, on the loopback address.
    pub message_port: u16,
    /// Tasks at a time.
    pub tasks: usize,
    /// The folder for results of tasks.
    pub folder: PathBuf,
}

/// Runs an executor until the process is told to end.
///
/// # Errors
/// No scheduler answers for ten seconds, or a port is taken.
pub async fn serve_executor(options: ExecutorOptions) -> std::result::Result<(), BallistaError> {
    let config = ExecutorProcessConfig {
        port: options.port,
        grpc_port: options.message_port,
        scheduler_host: options.scheduler.ip().to_string(),
        scheduler_port: options.scheduler.port(),
        scheduler_connect_timeout_seconds: 10,
        vcores: options.tasks,
        work_dir: Some(options.folder.display().to_string()),
        executor_heartbeat_interval_seconds: HEARTBEAT.as_secs(),
        override_function_registry: Some(Arc::new(function_registry())),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await
}
