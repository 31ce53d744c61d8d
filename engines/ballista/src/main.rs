//! A scheduler, an executor, or a query on a cluster of them on this machine.

use lightfoot_ballista::{
    demo, serve_executor, serve_scheduler, session, Cluster, ClusterOptions, ExecutorOptions, SILENCE,
};
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;
use std::io::Read;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;
use tokio::net::TcpListener;

const USAGE: &str = "\
Ballista with lightfoot's functions over columns of strings

Usage:
  lightfoot-ballista demo [--executors N]
      Runs queries over a generated log in this process and on a cluster of N executors (2), and
      says whether the results are equal
  lightfoot-ballista query [--executors N] --table NAME=PARQUET SQL
      Runs a query on a cluster of N executors on this machine
  lightfoot-ballista scheduler [--address IP:PORT] [--silence-seconds N]
      Runs a scheduler (127.0.0.1:0, a free port) and prints its address; an executor that was
      silent for so many seconds (30) is dead
  lightfoot-ballista executor --scheduler IP:PORT --port N --message-port N --folder PATH [--tasks N]
      Runs an executor of N tasks at a time (1)
";

type AnyResult<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    match runtime.block_on(run(std::env::args().skip(1).collect())) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lightfoot-ballista: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: Vec<String>) -> AnyResult<ExitCode> {
    let Some((command, rest)) = arguments.split_first() else { return Err(USAGE.into()) };
    let arguments = Arguments::new(rest)?;
    if arguments.flags.contains(&"--with-starter".to_owned()) {
        std::thread::spawn(end_with_starter);
    }
    match command.as_str() {
        "demo" => compare(&arguments).await,
        "query" => query(&arguments).await,
        "scheduler" => {
            let listener = TcpListener::bind(arguments.value("--address").unwrap_or("127.0.0.1:0")).await?;
            println!("{}", listener.local_addr()?);
            serve_scheduler(listener, silence(&arguments)?).await?;
            Ok(ExitCode::SUCCESS)
        }
        "executor" => {
            serve_executor(ExecutorOptions {
                scheduler: parsed("--scheduler", arguments.required("--scheduler")?)?,
                port: parsed("--port", arguments.required("--port")?)?,
                message_port: parsed("--message-port", arguments.required("--message-port")?)?,
                tasks: parsed("--tasks", arguments.value("--tasks").unwrap_or("1"))?,
                folder: arguments.required("--folder")?.into(),
            })
            .await?;
            Ok(ExitCode::SUCCESS)
        }
        "--help" | "-h" | "help" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("no such command: {other}\n\n{USAGE}").into()),
    }
}

/// Waits until the process that started this one is gone, then ends.
fn end_with_starter() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

fn silence(arguments: &Arguments) -> AnyResult<Duration> {
    match arguments.value("--silence-seconds") {
        Some(seconds) => Ok(Duration::from_secs(parsed::<u32>("--silence-seconds", seconds)?.into())),
        None => Ok(SILENCE),
    }
}

/// An option's value as what it has to be.
fn parsed<T: FromStr>(option: &str, value: &str) -> AnyResult<T>
where
    T::Err: Display,
{
    value.parse().map_err(|error| format!("{option} {value}: {error}").into())
}

fn cluster(arguments: &Arguments) -> AnyResult<Cluster> {
    let executors = parsed("--executors", arguments.value("--executors").unwrap_or("2"))?;
    if executors == 0 {
        return Err("--executors 0: a query needs at least one".into());
    }
    let options = ClusterOptions { executors, silence: silence(arguments)? };
    Ok(Cluster::start(&std::env::current_exe()?, &options)?)
}

async fn query(arguments: &Arguments) -> AnyResult<ExitCode> {
    let Some((name, path)) = arguments.required("--table")?.split_once('=') else {
        return Err("--table takes NAME=PARQUET, a file or a folder".into());
    };
    let [sql] = &arguments.others[..] else { return Err("query takes one SQL statement".into()) };
    let cluster = cluster(arguments)?;
    let session = session(&cluster.url()).await?;
    session.register_parquet(name, path, Default::default()).await?;
    session.sql(sql).await?.show().await?;
    Ok(ExitCode::SUCCESS)
}

async fn compare(arguments: &Arguments) -> AnyResult<ExitCode> {
    let folder = tempfile::tempdir()?;
    demo::write_logs(folder.path(), 8, 20_000).await?;
    let path = folder.path().display().to_string();
    let alone = datafusion::prelude::SessionContext::new();
    alone.register_parquet("logs", &path, Default::default()).await?;
    let cluster = cluster(arguments)?;
    let session = session(&cluster.url()).await?;
    session.register_parquet("logs", &path, Default::default()).await?;
    let mut all_equal = true;
    for sql in demo::QUERIES {
        let expected = alone.sql(sql).await?.to_string().await?;
        let found = session.sql(sql).await?.to_string().await?;
        let is_equal = expected == found;
        all_equal &= is_equal;
        println!("{sql}\n{found}");
        match is_equal {
            true => println!("equal to one process without lightfoot's functions\n"),
            false => println!("DIFFERS from one process without lightfoot's functions:\n{expected}\n"),
        }
    }
    Ok(if all_equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Options with values, flags, and what else was given.
struct Arguments {
    values: HashMap<String, String>,
    flags: Vec<String>,
    others: Vec<String>,
}

impl Arguments {
    fn new(arguments: &[String]) -> AnyResult<Arguments> {
        let mut found = Arguments { values: HashMap::new(), flags: Vec::new(), others: Vec::new() };
        let mut arguments = arguments.iter().cloned();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--with-starter" => found.flags.push(argument),
                "--address" | "--executors" | "--table" | "--scheduler" | "--port" | "--message-port"
                | "--tasks" | "--folder" | "--silence-seconds" => {
                    let Some(value) = arguments.next() else {
                        return Err(format!("{argument} takes a value").into());
                    };
                    found.values.insert(argument, value);
                }
                option if option.starts_with("--") => {
                    return Err(
                        format!("no such option: {option}; lightfoot-ballista --help lists them").into()
                    );
                }
                _ => found.others.push(argument),
            }
        }
        Ok(found)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn required(&self, name: &str) -> AnyResult<&str> {
        self.value(name)
            .ok_or_else(|| format!("{name} is missing; lightfoot-ballista --help lists options").into())
    }
}
