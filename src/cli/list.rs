//! `hbmark list`: what there is to measure, and on what.

use super::output::{Format, emit, note};
use super::{Exit, Failure};
use crate::catalog::{self, Card, MemoryFamily};
use crate::device::cuda::{self, Summary};
use crate::device::{self, DeviceError, Selected, Selector, machine};
use crate::pattern::{DeviceKind, PATTERNS, Profile};
use comfy_table::{Table, TableStyle};
use serde_json::{Value, json};

/// Arguments of `hbmark list`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  hbmark list cases --format json\n  hbmark list cards --memory hbm")]
pub struct Args {
    /// What to list
    #[arg(value_enum)]
    what: What,
    /// Only cards with this kind of memory
    #[arg(long, value_enum, value_name = "KIND")]
    memory: Option<MemoryFamily>,
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
    /// Cards that the catalog knows, by their data sheets
    Cards,
    /// Devices of this machine
    Devices,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    if args.memory.is_some() && !matches!(args.what, What::Cards) {
        return Err(Failure::Usage("--memory chooses among cards: use it with 'hbmark list cards'".into()));
    }
    let (header, rows) = match args.what {
        What::Patterns => (vec!["pattern", "summary"], patterns()),
        What::Cases => (vec!["case", "device", "profile"], cases()),
        What::Cards => {
            (vec!["card", "name", "memory", "capacity_gib", "bus_width_bits", "bandwidth_gbps", "launch_year"], cards(args.memory))
        }
        What::Devices => (vec!["device", "name", "memory_bytes", "uuid", "reason"], devices()?),
    };
    emit(&match args.format {
        Format::Table => table(&header, &rows),
        Format::Json => as_json(&header, &rows),
    })?;
    Ok(Exit::Done)
}

fn patterns() -> Vec<Vec<Value>> {
    PATTERNS.iter().map(|p| vec![json!(p.name()), json!(p.summary())]).collect()
}

fn cases() -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for kind in [DeviceKind::Cuda, DeviceKind::Host] {
        for pattern in PATTERNS {
            for id in pattern.ids(Profile::Full, kind) {
                // The smallest profile that measures it.
                let profile = [Profile::Quick, Profile::Standard].into_iter().find(|&p| pattern.ids(p, kind).contains(&id));
                rows.push(vec![json!(id), json!(kind), json!(profile.unwrap_or(Profile::Full))]);
            }
        }
    }
    rows
}

fn cards(memory: Option<MemoryFamily>) -> Vec<Vec<Value>> {
    let chosen = catalog::cards().iter().filter(|card| memory.is_none() || card.memory.family() == memory);
    let row = |card: &Card| {
        let memory = &card.memory;
        vec![
            json!(card.id),
            json!(card.name),
            json!(memory.kind),
            json!(memory.capacity_gib),
            json!(memory.bus_width_bits),
            json!(memory.bandwidth_gbps),
            json!(card.launch_year),
        ]
    };
    chosen.map(row).collect()
}

/// Every device, also one that does not answer: with the reason.
fn devices() -> Result<Vec<Vec<Value>>, Failure> {
    let mut selected = match device::list(&Selector::All) {
        Ok((found, _)) => found,
        // The host can be measured all the same, so this is a remark and no failure.
        Err(error @ DeviceError::Unusable(_)) => {
            note(&format!("no CUDA device: {error}"));
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    selected.push(Selected::Host);
    let row = |one| match one {
        Selected::Cuda(index) => match cuda::summary(index) {
            Ok(Summary { name, memory_bytes, uuid }) => vec![json!(index), json!(name), json!(memory_bytes), json!(uuid), Value::Null],
            Err(error) => vec![json!(index), Value::Null, Value::Null, Value::Null, json!(error.to_string())],
        },
        Selected::Host => {
            let host = machine::host();
            vec![json!("host"), json!(host.cpu), json!(host.memory_bytes), Value::Null, Value::Null]
        }
    };
    Ok(selected.into_iter().map(row).collect())
}

fn table(header: &[&str], rows: &[Vec<Value>]) -> String {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(header.iter().copied());
    table.add_rows(rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>()));
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn as_json(header: &[&str], rows: &[Vec<Value>]) -> String {
    let objects: Vec<Value> = rows
        .iter()
        .map(|row| Value::Object(header.iter().zip(row).map(|(key, value)| ((*key).to_owned(), value.clone())).collect()))
        .collect();
    format!("{:#}\n", Value::Array(objects))
}
