//! `hbmark list`: what there is to measure, and on what.

use super::{Exit, Failure, output::emit};
use crate::device::{self, DeviceError, Selected, Selector};
use crate::pattern::{DeviceKind, PATTERNS, Profile};
use comfy_table::{Table, presets};
use serde_json::{Value, json};

/// Arguments of `hbmark list`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  hbmark list cases --format json")]
pub struct Args {
    /// What to list
    #[arg(value_enum)]
    what: What,
    /// How to print it
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Families of memory accesses
    Patterns,
    /// Everything that can be measured, by id
    Cases,
    /// Devices of this machine
    Devices,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let (header, rows) = match args.what {
        What::Patterns => (vec!["pattern", "what it does"], patterns()),
        What::Cases => (vec!["case", "device", "profile"], cases()),
        What::Devices => (vec!["device", "name", "memory_gib", "uuid"], devices()?),
    };
    emit(&match args.format {
        Format::Table => table(&header, &rows),
        Format::Json => as_json(&header, &rows),
    })?;
    Ok(Exit::Done)
}

fn patterns() -> Vec<Vec<String>> {
    PATTERNS.iter().map(|p| vec![p.name().to_owned(), p.summary().to_owned()]).collect()
}

fn cases() -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for kind in [DeviceKind::Cuda, DeviceKind::Host] {
        for pattern in PATTERNS {
            for id in pattern.ids(Profile::Full, kind) {
                // The smallest profile that measures it.
                let profile = [Profile::Quick, Profile::Standard].into_iter().find(|&p| pattern.ids(p, kind).contains(&id));
                rows.push(vec![id, kind.to_string(), profile.unwrap_or(Profile::Full).to_string()]);
            }
        }
    }
    rows
}

fn devices() -> Result<Vec<Vec<String>>, Failure> {
    let mut selected = match device::list(&Selector::All) {
        Ok((found, _)) => found,
        // The host can be measured all the same, so this is a remark and no failure.
        Err(error @ DeviceError::Unusable(_)) => {
            eprintln!("no CUDA device: {error}");
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    selected.push(Selected::Host);
    let mut rows = Vec::new();
    for one in selected {
        let identity = device::open(one)?.identity()?;
        let name = match one {
            Selected::Cuda(index) => index.to_string(),
            Selected::Host => "host".into(),
        };
        let gib = format!("{:.1}", identity.memory.total_bytes as f64 / f64::from(1 << 30));
        rows.push(vec![name, identity.name, gib, identity.uuid.unwrap_or_else(|| "-".into())]);
    }
    Ok(rows)
}

fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().copied());
    table.add_rows(rows);
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn as_json(header: &[&str], rows: &[Vec<String>]) -> String {
    let objects: Vec<Value> = rows
        .iter()
        .map(|row| Value::Object(header.iter().zip(row).map(|(key, value)| (key.replace(' ', "_"), json!(value))).collect()))
        .collect();
    format!("{:#}\n", Value::Array(objects))
}
