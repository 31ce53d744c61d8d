//! `lightfoot index build`: reads keys, writes an index file, and prints a sentence about it to
//! standard error.

use super::key_type::{kind, named, with_key};
use super::keys::{contents, cut_short, parse_binary, parse_lines, split_lengths, split_lines, Readable};
use crate::cli::{IndexBuild, KeyInput};
use anyhow::{anyhow, Result};
use present::exit::refused;
use search::{BytesIndex, Error, Index, KeyType, Layout, Options, LAYOUTS};

pub(super) fn run(options: &IndexBuild) -> Result<()> {
    let kind = kind(&options.kind)?;
    let layout = layout(options.layout.as_deref())?;
    if let Some(folder) =
        options.output.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        anyhow::bail!(
            "cannot write {}: there is no directory {}",
            options.output.display(),
            folder.display()
        );
    }
    with_key!(kind, K => numbers::<K>(options, layout), strings(options, layout))
}

fn layout(name: Option<&str>) -> Result<Options> {
    let Some(name) = name else { return Ok(Options::default()) };
    let layout = Layout::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = LAYOUTS.iter().map(|entry| entry.name).collect();
        refused(format!("there is no layout {name}: the layouts are {}", known.join(", ")))
    })?;
    Ok(Options { layout: Some(layout), ..Options::default() })
}

/// Builds an index of numbers. Keys are sorted unless the user says that they are.
fn numbers<K: Readable>(options: &IndexBuild, plan: Options) -> Result<()> {
    let (name, bytes) = contents(&options.keys)?;
    let mut keys = Vec::new();
    match options.input {
        KeyInput::Text => {
            parse_lines::<K>(&name, &bytes, 1, &mut keys)?;
        }
        KeyInput::Binary if bytes.len() % K::BYTES != 0 => {
            return Err(cut_short(&name, bytes.len() % K::BYTES, K::TYPE.name()));
        }
        KeyInput::Binary => parse_binary(&bytes, &mut keys),
    }
    drop(bytes);
    if !options.sorted {
        keys.sort_unstable_by(K::compare);
    }
    let index = Index::build_with(&keys, &plan).map_err(|error| unsorted(&name, options, &error))?;
    index.save(&options.output).map_err(|error| named(&options.output, &error))?;
    done(options, index.len(), index.bytes(), index.layout());
    Ok(())
}

fn strings(options: &IndexBuild, plan: Options) -> Result<()> {
    let (name, bytes) = contents(&options.keys)?;
    let mut strings = match options.input {
        KeyInput::Text => split_lines(&bytes),
        KeyInput::Binary => {
            let (strings, used) = split_lengths(&bytes);
            if used < bytes.len() {
                return Err(cut_short(&name, bytes.len() - used, KeyType::Bytes.name()));
            }
            strings
        }
    };
    if !options.sorted {
        strings.sort_unstable();
    }
    let index = BytesIndex::build_with(&strings, &plan).map_err(|error| unsorted(&name, options, &error))?;
    index.save(&options.output).map_err(|error| named(&options.output, &error))?;
    done(options, index.len(), index.bytes(), index.layout());
    Ok(())
}

/// The error for a key out of order; for text input it names the line.
fn unsorted(name: &str, options: &IndexBuild, error: &Error) -> anyhow::Error {
    match error {
        Error::Unsorted { position } => {
            let place = if options.input == KeyInput::Text { "key" } else { "binary key" };
            anyhow!(
                "{name}: {place} number {} is smaller than the one before it: leave --sorted out",
                position + 1
            )
        }
        other => anyhow!("{name}: {other}"),
    }
}

fn done(options: &IndexBuild, keys: usize, bytes: usize, layout: Layout) {
    present::tell!(
        "lightfoot: wrote {}: {keys} keys, {bytes} bytes, layout {}",
        options.output.display(),
        layout.name()
    );
}
