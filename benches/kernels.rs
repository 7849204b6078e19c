//! The kernels through criterion, timed on the device's own clock (CUDA events).
//!
//! Without a CUDA device it says so and measures nothing.

use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hbmark::device::{self, Selected, Selector};
use hbmark::measure;
use hbmark::pattern::{Data, Level, Profile, plan, select};

/// Time on the device's clock, in nanoseconds.
struct DeviceClock;

impl Measurement for DeviceClock {
    type Intermediate = ();
    type Value = f64;

    // Every benchmark here hands over times itself (`iter_custom`); criterion has
    // no work of its own to time.
    fn start(&self) {}
    fn end(&self, (): ()) -> f64 {
        0.0
    }
    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }
    fn zero(&self) -> f64 {
        0.0
    }
    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        &DecimalBytes
    }
}

/// Microseconds, and 10^9 bytes or flops a second.
struct DecimalBytes;

impl ValueFormatter for DecimalBytes {
    fn scale_values(&self, _typical: f64, values: &mut [f64]) -> &'static str {
        values.iter_mut().for_each(|ns| *ns /= 1e3);
        "us"
    }
    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (amount, unit) = match throughput {
            Throughput::BytesDecimal(bytes) | Throughput::Bytes(bytes) => (*bytes, "GB/s"),
            Throughput::Elements(flops) => (*flops, "GFLOP/s"),
            _ => (1, "G/s"),
        };
        values.iter_mut().for_each(|ns| *ns = amount as f64 / *ns);
        unit
    }
    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "ns"
    }
}

fn kernels(criterion: &mut Criterion<DeviceClock>) {
    let selected = match device::list(&Selector::All) {
        Ok((selected, _)) => selected,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    for (number, one) in selected.into_iter().enumerate() {
        if let Err(reason) = bench_device(criterion, number, one) {
            println!("skipped: {reason}");
        }
    }
}

fn bench_device(criterion: &mut Criterion<DeviceClock>, number: usize, one: Selected) -> Result<(), Box<dyn std::error::Error>> {
    let mut device = device::open(one)?;
    let facts = device.facts()?;
    let mut group = criterion.benchmark_group(format!("device-{number}"));
    for id in select(&[], Profile::Quick, &facts)? {
        let case = plan(&id, &facts)?;
        let mut program = device.load(&case.plan)?;
        program.prepare(Data::Random)?;
        // Bytes are beside the point where the data stay in registers.
        group.throughput(match case.level {
            Level::Cache => Throughput::Elements(case.flops),
            _ => Throughput::BytesDecimal(case.bytes.requested()),
        });
        let mut failure = None;
        group.bench_function(id.to_string(), |bencher| {
            bencher.iter_custom(|executions| {
                let executions = u32::try_from(executions).unwrap_or(u32::MAX);
                // A failed device reports its reason below; criterion needs some time to go on.
                program.execute(executions).map(|timing| timing.ns).unwrap_or_else(|error| {
                    failure = Some(error);
                    1.0
                })
            });
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        let verification = measure::verify(program.as_mut(), &case.plan, Data::Random)?;
        if !verification.passed() {
            return Err(format!("{id} returned wrong data: {verification:?}").into());
        }
    }
    Ok(())
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(DeviceClock).sample_size(20);
    targets = kernels
}
criterion_main!(benches);
