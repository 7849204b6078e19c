//! A diagnosis as people read it.

use std::collections::BTreeMap;

use super::diagnosis::{Diagnosis, Driver, Examined, Now};
use crate::chart::words;
use crate::record::{self, Host, Missing};

/// What is not told.
const UNKNOWN: &str = "-";

pub(super) fn text(diagnosis: &Diagnosis) -> String {
    let mut lines = Lines::default();
    lines.plain(&verdict(diagnosis));
    host(&mut lines, diagnosis);
    driver(&mut lines, &diagnosis.driver);
    kernels(&mut lines, diagnosis);
    for device in &diagnosis.devices {
        examined(&mut lines, device);
    }
    for problem in &diagnosis.problems {
        lines.plain(&format!("problem: {problem}"));
    }
    lines.0
}

/// Lines of a name and a value.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn plain(&mut self, text: &str) {
        self.0 += &format!("{}\n", words::clean(text));
    }

    fn field(&mut self, name: &str, value: &str) {
        self.0 += &format!("{name:<14}{}\n", words::clean(value));
    }
}

fn verdict(diagnosis: &Diagnosis) -> String {
    let all = diagnosis.devices.len();
    match diagnosis.devices.iter().filter(|device| device.usable).count() {
        0 => "CUDA would not work here: only the host can be measured, with 'hbmark run --device host'".into(),
        usable => format!("CUDA works: {usable} of {all} device{} can be measured", if all == 1 { "" } else { "s" }),
    }
}

fn host(lines: &mut Lines, diagnosis: &Diagnosis) {
    let Host { os, kernel, cpu, cpus, memory_bytes, .. } = &diagnosis.host;
    lines.field("host", &format!("{cpu}, {cpus} processors, {} of memory", words::bytes(*memory_bytes)));
    lines.field("system", &format!("{}, kernel {}", or_unknown(os), or_unknown(kernel)));
    let around = &diagnosis.virtualization;
    let machine = around.virtual_machine.map_or(UNKNOWN, |is| if is { "yes" } else { "no" });
    let wsl = if around.wsl == Some(true) { "; WSL" } else { "" };
    lines.field("around it", &format!("virtual machine: {machine}; container: {}{wsl}", or_unknown(&around.container)));
    for (name, value) in &diagnosis.environment {
        lines.field("variable", &format!("{name}={value}"));
    }
}

fn driver(lines: &mut Lines, driver: &Driver) {
    let told = |name: &str, value: &Option<String>| match (value, driver.missing.get(name)) {
        (Some(value), _) => value.clone(),
        (None, reason) => format!("{UNKNOWN} ({})", reason.map_or("no reason", String::as_str)),
    };
    lines.field("libcuda", &told("library", &driver.library));
    lines.field("CUDA version", &told("cuda_version", &driver.cuda_version));
    lines.field("driver", &told("version", &driver.version));
}

/// One line for all kernels that need the same.
fn kernels(lines: &mut Lines, diagnosis: &Diagnosis) {
    let mut by_need: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for kernels in &diagnosis.kernels {
        let supported = match kernels.supported {
            Some(true) => "this driver has it",
            Some(false) => "this driver is older",
            None => "the driver's version is not known",
        };
        let need = format!(
            "PTX {} for {} and later needs CUDA {} (driver {} or newer): {supported}",
            kernels.ptx_version, kernels.target, kernels.needs_cuda, kernels.needs_driver
        );
        by_need.entry(need).or_default().push(kernels.name);
    }
    for (need, names) in by_need {
        lines.field("kernels", &format!("{need} ({})", names.join(", ")));
    }
}

fn examined(lines: &mut Lines, examined: &Examined) {
    let title = format!("device {}", examined.index);
    let Some(device) = &examined.device else {
        return lines.field(&title, "cannot be used");
    };
    let usable = if examined.usable { "" } else { ": cannot be used" };
    lines.field(&title, &format!("{}, {}, at {}{usable}", device.name, or_unknown(&device.uuid), or_unknown(&device.pci_address)));
    let memory = &device.memory;
    lines.field("  card", &device.card);
    lines.field("  memory", &format!("{}, {} free", words::bytes(memory.total_bytes), words::bytes(memory.free_bytes)));
    let ecc = &device.ecc;
    lines.field(
        "  ECC",
        &format!("{}; errors: {} corrected, {} uncorrected", on_off(ecc.enabled), figure(ecc.corrected), figure(ecc.uncorrected)),
    );
    let sharing = &device.virtualization;
    lines.field(
        "  sharing",
        &format!(
            "MIG {}, slice: {}; vGPU: {}; other processes: {}",
            on_off(sharing.mig_enabled),
            or_unknown(&sharing.mig_profile),
            or_unknown(&sharing.vgpu),
            figure(device.other_processes)
        ),
    );
    let limits = &device.power_limits;
    let (default, requested, enforced) = (figure(limits.default_w), figure(limits.requested_w), figure(limits.enforced_w));
    lines.field("  power limit", &format!("{enforced} W; {requested} W requested, {default} W by default"));
    let pcie = &device.pcie;
    lines.field(
        "  PCIe",
        &format!(
            "generation {} of {}, {} of {} lanes, under load",
            figure(pcie.generation_under_load),
            figure(pcie.generation_max),
            figure(pcie.width_under_load),
            figure(pcie.width_max)
        ),
    );
    if let Some(now) = &examined.now {
        sensors(lines, now);
    }
    for (reason, fields) in untold(device, examined) {
        lines.field("  not told", &format!("{}: {reason}", fields.join(", ")));
    }
}

fn sensors(lines: &mut Lines, now: &Now) {
    let state = now.performance_state.map_or(UNKNOWN.to_owned(), |state| format!("P{state}"));
    let held = match now.throttle_reasons.as_deref() {
        None => UNKNOWN.to_owned(),
        Some([]) => "nothing".to_owned(),
        Some(reasons) => reasons.join(", "),
    };
    lines.field(
        "  clocks now",
        &format!(
            "multiprocessors {} MHz, memory {} MHz, state {state}; held back by: {held}",
            figure(now.sm_clock_mhz),
            figure(now.memory_clock_mhz)
        ),
    );
    lines.field(
        "  power now",
        &format!("{} W; {} °C, memory {} °C", figure(now.power_w), figure(now.temperature_gpu_c), figure(now.temperature_memory_c)),
    );
}

/// Fields that are not told, by their reason.
fn untold<'a>(device: &'a record::Device, examined: &'a Examined) -> BTreeMap<&'a str, Vec<String>> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut add = |object: &str, missing: &'a Missing| {
        for (field, reason) in missing {
            by_reason.entry(reason).or_default().push(format!("{object}{field}"));
        }
    };
    add("", &device.missing);
    add("memory.", &device.memory.missing);
    add("ecc.", &device.ecc.missing);
    add("remapped_rows.", &device.remapped_rows.missing);
    add("power_limits.", &device.power_limits.missing);
    add("pcie.", &device.pcie.missing);
    add("virtualization.", &device.virtualization.missing);
    add("", &examined.missing);
    if let Some(now) = &examined.now {
        add("now.", &now.missing);
    }
    by_reason
}

fn or_unknown(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or(UNKNOWN)
}

fn figure<T: ToString>(value: Option<T>) -> String {
    value.map_or(UNKNOWN.to_owned(), |value| value.to_string())
}

fn on_off(value: Option<bool>) -> &'static str {
    value.map_or(UNKNOWN, |on| if on { "on" } else { "off" })
}
