//! Run documents for the tests of charts and reports, with figures like real ones.

use serde_json::{Map, json};

use crate::pattern::{Bytes, Data, DeviceKind, Form, Level, Profile};
use crate::record::{
    Device, Ecc, EnergySource, Host, InFlight, Measurement, Memory, Missing, Pcie, Peak, Peaks, PowerLimits, Program, Provenance,
    RemappedRows, Run, Soak, SoakInterval, Status, Time, Tuning, TuningSource, Verdict, Virtualization,
};

const GIB: u64 = 1 << 30;

/// An H200 with stream, compute and copy-engine rows.
pub(crate) fn h200() -> Run {
    let array = 3840 << 20;
    let peak = 4814.3;
    let mut run = run(DeviceKind::Cuda, "NVIDIA H200");
    run.peaks.memory_gbps.push(Peak { value: peak, provenance: Provenance::DeviceAttributes });
    run.peaks.compute_gflops.insert("fma/f32".into(), vec![Peak { value: 59_836.2, provenance: Provenance::Measured }]);
    run.measurements = vec![
        compute(59_836.2),
        stream("read", 1, 0, array, 4712.3, Some(peak)),
        stream("write", 0, 1, array, 4697.0, Some(peak)),
        stream("copy", 1, 1, array, 4309.4, Some(peak)),
        Measurement { compute_utilization: Some(0.0122), ..stream("triad", 2, 1, array, 4396.1, Some(peak)) },
        Measurement { id: "copy_engine/d2d".into(), pattern: "copy_engine".into(), ..stream("copy", 1, 1, array, 4305.2, Some(peak)) },
    ];
    run
}

/// Streams of a recorded run of an H200 (hbmark 0.1.0, suite version 2), rounded: operation, type, bandwidth, that of the
/// naive kernel, and the KiB in flight that come to nine tenths.
const TUNED: [(&str, &str, f64, f64, Option<f64>); 15] = [
    ("read", "f32", 4690.3, 2427.6, Some(21.49)),
    ("write", "f32", 4692.8, 3386.0, None),
    ("copy", "f32", 4282.3, 3813.6, Some(17.04)),
    ("scale", "f32", 4293.8, 3801.8, Some(17.51)),
    ("scale", "f64", 4292.6, 3828.8, Some(17.70)),
    ("scale", "f16", 4297.5, 3792.0, Some(17.29)),
    ("add", "f32", 4435.8, 4324.4, Some(22.62)),
    ("add", "f64", 4427.3, 4337.7, Some(22.63)),
    ("add", "f16", 4436.1, 4321.3, Some(22.70)),
    ("triad", "f32", 4427.3, 4319.2, Some(22.68)),
    ("triad", "f64", 4435.7, 4343.0, Some(22.66)),
    ("triad", "f16", 4404.7, 4310.2, Some(22.35)),
    ("dot", "f32", 4711.7, 4554.7, Some(23.22)),
    ("dot", "f64", 4711.1, 4564.4, Some(23.17)),
    ("dot", "f16", 4711.3, 4559.1, Some(23.38)),
];

/// The bandwidth of the same run by KiB in flight on a multiprocessor.
const IN_FLIGHT_KIB: [f64; 14] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0];
const IN_FLIGHT: [(&str, &[f64]); 4] = [
    ("read", &[308.8, 618.2, 921.2, 1212.4, 1782.3, 2285.2, 3209.5, 3814.3, 4407.5, 3615.3, 4617.0, 4619.2, 4625.6, 4642.2]),
    ("copy", &[575.9, 1053.2, 1473.8, 1864.4, 2541.5, 3021.9, 3494.4, 3836.6, 3970.7, 3938.9, 3836.8, 3822.9, 3807.1, 3826.4]),
    ("triad", &[773.2, 1402.2, 1964.6, 2456.3, 3139.9, 3513.2, 4077.4, 4198.4, 4153.9, 4145.4, 4103.6, 4085.9]),
    ("dot", &[561.2, 1098.1, 1613.1, 2092.9, 2947.1, 3581.3, 4311.2, 4507.9, 4626.4, 4600.7, 4625.5, 4623.1]),
];

/// What the recorded run says of the other ways of an f32 stream.
fn tuning(operation: &str) -> Option<Tuning> {
    let &(.., naive, ease) = TUNED.iter().find(|(of, element, ..)| (*of, *element) == (operation, "f32"))?;
    let gbps = IN_FLIGHT.iter().find(|(of, _)| *of == operation).map_or(&[][..], |(_, gbps)| gbps);
    // Two arrays are twice as much in flight, and the first and third rung of one are none of two.
    let kib: Vec<f64> = IN_FLIGHT_KIB.into_iter().filter(|kib| gbps.len() == IN_FLIGHT_KIB.len() || ![1.0, 3.0].contains(kib)).collect();
    let mut missing = Missing::new();
    if ease.is_none() {
        missing.insert("ease_kib_per_unit".into(), "the case loads nothing".into());
    }
    Some(Tuning {
        form: Form { vector_bytes: 16, unroll: 4, once: false, block: 512, blocks_per_unit: Some(128) },
        source: TuningSource::Searched,
        tried: 20,
        naive_gbps: Some(naive),
        ease_kib_per_unit: ease,
        in_flight: kib.into_iter().zip(gbps).map(|(kib_per_unit, &gbps)| InFlight { kib_per_unit, gbps }).collect(),
        missing,
    })
}

/// An H200 whose streams, of all operations and types, were tuned.
pub(crate) fn h200_tuned() -> Run {
    let mut run = h200();
    run.measurements.retain(|row| row.pattern != "stream");
    let rows = TUNED.map(|(operation, element, gbps, naive, ease)| {
        let (reads, writes) = match operation {
            "read" => (1, 0),
            "write" => (0, 1),
            "copy" | "scale" => (1, 1),
            "dot" => (2, 0),
            _ => (2, 1),
        };
        let mut row = stream(operation, reads, writes, 3840 << 20, gbps, Some(4814.3));
        row.id = format!("stream/{operation}/{element}");
        row.tuning = tuning(operation).map(|tuning| Tuning { naive_gbps: Some(naive), ease_kib_per_unit: ease, ..tuning });
        row
    });
    run.measurements.splice(1..1, rows);
    run
}

/// An H200 that has stride, gather, scatter and convolution rows too.
pub(crate) fn h200_with_every_pattern() -> Run {
    let mut run = h200();
    for row in &mut run.measurements {
        row.tuning = row.id.strip_prefix("stream/").and_then(|rest| tuning(rest.split('/').next()?));
    }
    for operation in ["read", "copy"] {
        for stride in [4u64, 8, 16, 32, 64, 128, 256, 512, 1024] {
            let full = if operation == "read" { 4700.0 } else { 4300.0 };
            let slowed = full * if stride > 32 { (stride as f64 / 32.0).powf(-0.25) } else { 1.0 };
            let amplification = (stride / 4).min(8);
            run.measurements.push(stride_row(operation, stride, 2 * GIB, slowed, amplification));
        }
    }
    for (name, full) in [("gather/read", 4500.0), ("scatter/write", 4400.0)] {
        for log in 2..=12 {
            let chunk = 1u64 << log;
            run.measurements.push(chunk_row(name, chunk, full * (chunk as f64 / 4096.0).powf(0.1)));
        }
    }
    for page in [4096u64, 16384, 65536] {
        let bytes = Bytes { compulsory: 4 * GIB + 4 * GIB / page * 2, ..Bytes::contiguous(4 * GIB, 0) };
        let mut row = row(&format!("gather/kv/{page}"), Level::Dram, bytes, 4400.0 + page as f64 / 1000.0);
        row.parameters.insert("array_bytes".into(), json!(2 * GIB));
        run.measurements.push(row);
    }
    run.measurements.extend([
        conv3d("direct/f32/1x16", 64, Level::Dram, 2890.0, 0.43),
        conv3d("direct/f32/16x16", 64, Level::Dram, 610.0, 0.71),
        conv3d("depthwise/f32/32x32", 64, Level::Dram, 3650.0, 0.214),
    ]);
    run.measurements.extend([(1, 4480.0), (2, 4460.0), (4, 4400.0), (16, 4300.0), (64, 3900.0)].map(|(batch, gbps)| matvec(batch, gbps)));
    for (units, gbps) in [(1u64, 70.1), (2, 140.0), (4, 279.0), (8, 560.0), (33, 2250.0), (66, 4210.0), (99, 4560.0), (132, 4610.0)] {
        let mut row = row(&format!("saturation/read/{units}"), Level::Dram, Bytes::contiguous(3840 << 20, 0), gbps);
        row.parameters.insert("array_bytes".into(), json!(3840u64 << 20));
        run.measurements.push(row);
    }
    for (bytes, level, ns) in [
        (16u64 << 10, Level::Cache, 17.2),
        (8 << 20, Level::Cache, 141.0),
        (128 << 20, Level::Mixed, 402.0),
        (GIB, Level::Dram, 598.0),
        (32 * GIB, Level::Dram, 812.0),
    ] {
        run.measurements.push(latency_row(&format!("chase/{bytes}"), level, 8.0 / ns, ns));
    }
    run.device.pcie.generation_under_load = Some(5);
    run.device.pcie.width_under_load = Some(16);
    run.peaks.link_gbps.push(Peak { value: 63.008, provenance: Provenance::DeviceAttributes });
    for (name, directions, gbps) in [
        ("h2d/pinned", 1, 55.3),
        ("h2d/pageable", 1, 11.9),
        ("d2h/pinned", 1, 54.8),
        ("d2h/pageable", 1, 9.4),
        ("both/pinned", 2, 101.0),
        ("both/pageable", 2, 12.7),
    ] {
        let mut row = row(&format!("transfer/{name}"), Level::Mixed, Bytes::contiguous(directions * (256 << 20), 0), gbps);
        row.parameters.insert("array_bytes".into(), json!(256u64 << 20));
        row.fraction_of_link = Some(gbps / 63.008 / directions as f64);
        run.measurements.push(row);
    }
    for (percent, gbps, ns) in [(0, 0.0133, 601.0), (25, 1203.0, 623.0), (50, 2406.0, 661.0), (90, 4330.0, 1120.0), (100, 4560.0, 2230.0)] {
        run.measurements.push(latency_row(&format!("loaded/{percent}"), Level::Dram, gbps, ns));
    }
    run
}

/// An H200 whose read was soaked for ten minutes: the power limit holds it back from the middle on.
pub(crate) fn h200_with_a_soak() -> Run {
    let mut run = h200();
    let interval = |n: u32| {
        let heat = 1.0 - (-f64::from(n) / 20.0).exp();
        let late = n >= 60;
        SoakInterval {
            start_s: f64::from(n) * 5.0,
            achieved_gbps: if late { 4425.6 } else { 4610.0 },
            sm_clock_mhz: Some(if late { 1710.0 } else { 1980.0 }),
            memory_clock_mhz: Some(3201.0),
            temperature_gpu_c: Some(38.0 + 33.0 * heat),
            temperature_memory_c: Some(45.0 + 43.0 * heat),
            power_w: Some(620.0 + 70.0 * heat),
            throttled_fraction: Some(if late { 1.0 } else { 0.0 }),
        }
    };
    let row = run.measurements.iter_mut().find(|row| row.id == "stream/read/f32").expect("the run has a read");
    row.soak = Some(Soak {
        asked_s: 600,
        run_s: 600.1,
        first_10_s_gbps: 4610.0,
        last_10_s_gbps: 4425.6,
        last_over_first_fraction: Some(0.96),
        joules_per_gb: Some(0.145),
        picojoules_per_bit: Some(18.125),
        energy_source: Some(EnergySource::Counter),
        power_mean_w: Some(655.0),
        power_max_w: Some(699.0),
        temperature_gpu_max_c: Some(71.0),
        temperature_memory_max_c: Some(88.0),
        throttled_fraction: Some(0.5),
        throttle_reasons: Some([("SwPowerCap".to_owned(), 0.5), ("GpuIdle".to_owned(), 0.001)].into()),
        intervals: (0..120).map(interval).collect(),
        missing: Missing::new(),
    });
    run
}

/// An H200 that has a curve of reads and copies by footprint, in order and in random order.
pub(crate) fn h200_with_footprints() -> Run {
    let mut run = h200();
    for (operation, cache, memory) in
        [("read", 7000.0, 4600.0), ("copy", 5200.0, 4200.0), ("read-random", 6500.0, 3600.0), ("copy-random", 4600.0, 2900.0)]
    {
        for doubling in 16..37u32 {
            for bytes in [1u64 << doubling, (1u64 << doubling) * 3 / 2] {
                let hits = 1.0 / (1.0 + (bytes as f64 / 54e6).powi(6));
                let walked = if bytes > 8 << 30 && operation.ends_with("random") { 0.6 } else { 1.0 };
                run.measurements.push(footprint_row(operation, bytes, walked / (hits / cache + (1.0 - hits) / memory)));
            }
        }
    }
    run
}

/// A machine's RAM: two threads, small volumes that fit the cache, no theoretical peak.
pub(crate) fn host() -> Run {
    let mut run = run(DeviceKind::Host, "Intel(R) Xeon(R) Platinum 8481C CPU");
    run.peaks.missing.insert("memory_gbps".into(), "the memory's clock and width are not told".into());
    run.peaks.compute_gflops.insert("fma/f32".into(), vec![Peak { value: 182.4, provenance: Provenance::Measured }]);
    let note = "buffers capped at 2048 MiB beside a last-level cache of 105 MiB: up to 5 % of the accesses may have been served from it";
    let noted = |row: Measurement| Measurement { notes: vec![note.into()], ..row };
    run.measurements = vec![
        compute(182.4),
        noted(stream("read", 1, 0, 2 * GIB, 25.4, None)),
        noted(stream("write", 0, 1, 2 * GIB, 13.1, None)),
        noted(stream("copy", 1, 1, GIB, 17.9, None)),
        Measurement { compute_utilization: Some(0.0179), ..noted(stream("triad", 2, 1, 682 << 20, 19.6, None)) },
    ];
    for operation in ["read", "copy"] {
        for (stride, compulsory) in [(4u64, 24.8), (32, 21.2), (256, 14.5)] {
            let compulsory = if operation == "read" { compulsory } else { compulsory * 0.7 };
            run.measurements.push(stride_row(operation, stride, GIB, compulsory, (stride / 4).min(16)));
        }
    }
    run.measurements.extend([
        conv3d("direct/f32/1x16", 32, Level::Cache, 8.21, 0.287),
        conv3d("direct/f32/16x16", 32, Level::Cache, 1.13, 0.334),
        conv3d("depthwise/f32/32x32", 32, Level::Cache, 14.9, 0.512),
    ]);
    run
}

/// `n` cards of different speed with names of thirty characters.
pub(crate) fn many(n: usize) -> Vec<Run> {
    (0..n)
        .map(|i| {
            let mut run = h200_with_every_pattern();
            run.device.name = format!("NVIDIA RTX {} Ti SUPER 32 GB", 4001 + i);
            assert_eq!(run.device.name.chars().count(), 30);
            let factor = 1.0 - i as f64 * 0.11;
            run.peaks.memory_gbps[0].value *= factor;
            for row in &mut run.measurements {
                for figure in [&mut row.achieved_gbps, &mut row.compulsory_gbps] {
                    *figure = figure.map(|v| v * factor);
                }
                row.time_ns.as_mut().unwrap().median /= factor;
                if let Some(tuning) = &mut row.tuning {
                    tuning.naive_gbps = tuning.naive_gbps.map(|gbps| gbps * factor);
                    tuning.ease_kib_per_unit = tuning.ease_kib_per_unit.map(|kib| kib * factor);
                    tuning.in_flight.iter_mut().for_each(|point| point.gbps *= factor);
                }
            }
            run
        })
        .collect()
}

/// Makes a row's data wrong.
pub(crate) fn spoil(run: &mut Run, id: &str) {
    let row = run.measurements.iter_mut().find(|row| row.id == id).expect("the run has this row");
    row.verified = Some(false);
    row.mismatches = Some(12);
    row.first_bad_index = Some(5);
    row.verdict = Some(Verdict::Unverified);
}

fn run(kind: DeviceKind, name: &str) -> Run {
    let cuda = kind == DeviceKind::Cuda;
    Run {
        schema_version: "1.0.0".into(),
        suite_version: "1".into(),
        program: Program { name: "hbmark".into(), version: "0.1.0".into(), target: "x86_64-linux".into(), build: "release".into() },
        started_at: "2026-01-02T03:04:05Z".into(),
        finished_at: Some("2026-01-02T03:04:25Z".into()),
        complete: true,
        profile: Profile::Quick,
        cache: Default::default(),
        data: Data::Random,
        cases: Vec::new(),
        host: Host {
            hostname: None,
            os: Some("Linux".into()),
            kernel: None,
            cpu: "Intel(R) Xeon(R) Platinum 8481C CPU".into(),
            cpus: 2,
            memory_bytes: 16 * GIB,
            missing: Missing::new(),
        },
        labels: Default::default(),
        device: Device {
            kind,
            card: crate::record::slug(name),
            name: name.into(),
            index: cuda.then_some(0),
            uuid: cuda.then(|| "GPU-00000000-0000-0000-0000-000000000000".into()),
            pci_address: None,
            pci_device_id: None,
            serial: None,
            part_number: None,
            vbios: None,
            driver_version: cuda.then(|| "580.159.03".into()),
            cuda_version: cuda.then(|| "13.0".into()),
            compute_capability: cuda.then(|| "9.0".into()),
            units: if cuda { 132 } else { 2 },
            sm_clock_max_mhz: None,
            timer_resolution_ns: None,
            memory: Memory {
                total_bytes: if cuda { 140 * GIB } else { 16 * GIB },
                free_bytes: if cuda { 139 * GIB } else { 12 * GIB },
                cache_bytes: Some(if cuda { 60 << 20 } else { 105 << 20 }),
                bus_width_bits: None,
                clock_mhz: None,
                missing: Missing::new(),
            },
            ecc: Ecc { enabled: cuda.then_some(true), corrected: None, uncorrected: None, missing: Missing::new() },
            remapped_rows: RemappedRows { corrected: None, uncorrected: None, pending: None, failed: None, missing: Missing::new() },
            pcie: Pcie {
                generation_under_load: None,
                width_under_load: None,
                generation_max: None,
                width_max: None,
                missing: Missing::new(),
            },
            power_limits: PowerLimits::unknown("not asked"),
            other_processes: None,
            virtualization: Virtualization {
                virtual_machine: None,
                container: None,
                wsl: None,
                vgpu: Some("none".into()),
                mig_enabled: None,
                mig_profile: Some("none".into()),
                missing: Missing::new(),
            },
            missing: Missing::new(),
        },
        peaks: Peaks::default(),
        measurements: Vec::new(),
    }
}

/// A sound row of `bytes` that take as long as `achieved_gbps` says.
fn row(id: &str, level: Level, bytes: Bytes, achieved_gbps: f64) -> Measurement {
    let median = bytes.requested() as f64 / achieved_gbps;
    let mut row = Measurement::without_figures(id, id.split('/').next().unwrap(), Status::Ok, String::new());
    row.reason = None;
    row.level = Some(level);
    row.bytes = Some(bytes);
    row.flops = Some(0);
    row.time_ns = Some(Time {
        median,
        p25: median * 0.985,
        p75: median * 1.012,
        min: median * 0.98,
        max: median * 1.1,
        noise_fraction: 0.0012,
        n: 20,
        executions_per_sample: 1,
        stopped_by: "noise".into(),
        host_fraction: Some(0.99),
    });
    row.achieved_gbps = Some(achieved_gbps);
    row.compulsory_gbps = Some(bytes.compulsory as f64 / median);
    row.achieved_gflops = Some(0.0);
    row.compute_utilization = Some(0.0);
    row.verified = Some(true);
    row.mismatches = Some(0);
    row.verdict = Some(Verdict::Ok);
    row.wall_s = Some(0.5);
    row
}

fn stream(operation: &str, reads: u64, writes: u64, array: u64, gbps: f64, peak: Option<f64>) -> Measurement {
    let mut row = row(&format!("stream/{operation}/f32"), Level::Dram, Bytes::contiguous(reads * array, writes * array), gbps);
    row.parameters.insert("array_bytes".into(), json!(array));
    row.fraction_of_peak = peak.map(|peak| gbps / peak);
    if operation == "triad" {
        row.flops = Some(array / 2);
        row.compute_pipe = Some("fma/f32".into());
        row.achieved_gflops = Some(gbps / 6.0);
    }
    row
}

fn compute(gflops: f64) -> Measurement {
    let mut row = row("compute/fma/f32", Level::Cache, Bytes::contiguous(8_650_752, 8_650_752), 29.2);
    row.compute_pipe = Some("fma/f32".into());
    row.flops = Some((gflops * 5.9e5) as u64);
    row.achieved_gflops = Some(gflops);
    row.compute_utilization = Some(1.0);
    row
}

fn stride_row(operation: &str, stride: u64, array: u64, compulsory_gbps: f64, amplification: u64) -> Measurement {
    let requested = array / amplification;
    let bytes = Bytes {
        requested_read: requested,
        requested_write: if operation == "copy" { requested } else { 0 },
        compulsory: if operation == "copy" { 2 * array } else { array },
        issued: Some(requested),
        dram: None,
    };
    let mut row = row(&format!("stride/{operation}/{stride}"), Level::Dram, bytes, compulsory_gbps / amplification as f64);
    row.parameters = Map::from_iter([("stride_bytes".to_owned(), json!(stride)), ("array_bytes".to_owned(), json!(array))]);
    row
}

/// A row of `operation` over this footprint, on an H200.
pub(crate) fn footprint_row(operation: &str, bytes: u64, gbps: f64) -> Measurement {
    let passes = (5_280_000_000 / bytes).max(1);
    let written = if operation.starts_with("copy") { bytes * passes / 2 } else { 0 };
    let moved = Bytes { compulsory: bytes, ..Bytes::contiguous(bytes * passes - written, written) };
    let mut row = row(&format!("footprint/{operation}/{bytes}"), Level::of(bytes, Some(60 << 20)), moved, gbps);
    row.parameters.insert("footprint_bytes".into(), json!(bytes));
    row.parameters.insert("passes".into(), json!(passes));
    row
}

fn matvec(batch: u64, gbps: f64) -> Measurement {
    let (matrices, side) = (8, 16_384);
    let bytes = Bytes::contiguous(matrices * (side + batch) * side * 2, matrices * batch * side * 4);
    let mut row = row(&format!("matvec/f16/{batch}"), Level::Dram, bytes, gbps);
    row.parameters = [("batch", batch), ("rows", side), ("columns", side), ("matrices", matrices)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let multiply_adds = batch < 4;
    row.compute_pipe = Some(if multiply_adds { "fma/f32" } else { "mma/f16" }.into());
    row.flops = Some(2 * matrices * side * side * batch);
    row.achieved_gflops = Some(gbps * batch as f64);
    // Nobody measures the peak of the tensor cores here.
    row.compute_utilization = multiply_adds.then_some(gbps * batch as f64 / 59_836.2);
    row
}

/// Chunks in 1 GiB, of which `compulsory_gbps` are moved with their index.
fn chunk_row(name: &str, chunk: u64, compulsory_gbps: f64) -> Measurement {
    let count = GIB / chunk.max(32);
    let compulsory = GIB + count * 4;
    let bytes = if name.starts_with("gather") { Bytes::contiguous(count * chunk, 0) } else { Bytes::contiguous(0, count * chunk) };
    let achieved = compulsory_gbps * (count * chunk) as f64 / compulsory as f64;
    let mut row = row(&format!("{name}/{chunk}"), Level::Dram, Bytes { compulsory, issued: None, ..bytes }, achieved);
    row.parameters.insert("array_bytes".into(), json!(GIB));
    row
}

fn latency_row(case: &str, level: Level, gbps: f64, ns: f64) -> Measurement {
    let mut row = row(&format!("latency/{case}"), level, Bytes::contiguous(1 << 30, 0), gbps);
    row.latency_ns = Some(ns);
    row.latency_cycles = Some(ns * 1.98);
    row
}

fn conv3d(case: &str, edge: u64, level: Level, gbps: f64, utilization: f64) -> Measurement {
    let mut row = row(&format!("conv3d/{case}"), level, Bytes::contiguous(64 << 20, 64 << 20), gbps);
    row.parameters.insert("batch".into(), json!(1));
    row.parameters.insert("extent".into(), json!([edge, edge, edge]));
    row.compute_pipe = Some("fma/f32".into());
    row.flops = Some(1 << 30);
    row.achieved_gflops = Some((1u64 << 30) as f64 / row.time_ns.as_ref().unwrap().median);
    row.compute_utilization = Some(utilization);
    row
}
