//! What happens without a device: loading a document, and drawing its charts.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hbmark::{chart, record, report};

fn documents(criterion: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/host-quick.json");
    let bytes = std::fs::metadata(&path).map(|m| m.len()).unwrap_or_default();
    let run = match record::load(&path) {
        Ok(run) => run,
        Err(error) => {
            println!("skipped: {error}");
            return;
        }
    };
    let mut group = criterion.benchmark_group("documents");
    group.throughput(Throughput::BytesDecimal(bytes));
    group.bench_function("load", |b| b.iter(|| record::load(black_box(&path))));
    group.finish();

    let runs = [run];
    criterion.bench_function("table", |b| b.iter(|| report::render(black_box(&runs), report::Format::Table, None)));
    let mut group = criterion.benchmark_group("charts");
    group.sample_size(20);
    match tempfile::tempdir() {
        Ok(folder) => {
            group.bench_function("draw", |b| b.iter(|| chart::draw_all(black_box(&runs), folder.path())));
        }
        Err(error) => println!("skipped: no temporary folder: {error}"),
    }
}

criterion_group!(benches, documents);
criterion_main!(benches);
