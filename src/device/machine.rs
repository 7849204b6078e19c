//! What is around the device: the machine, its memory, and the layers between
//! this program and the hardware.

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System};

use crate::record::{Host, Missing, Virtualization, known};

/// The machine, for the document.
pub fn host() -> Host {
    let mut missing = Missing::new();
    let mut ask = |field: &str, answer: Result<String, sysinfo::Error>| {
        let answer = answer.map_err(|e| format!("the system does not tell: {e}"));
        known(
            &mut missing,
            field,
            answer.and_then(|text| if text.is_empty() { Err("the system tells an empty name".into()) } else { Ok(text) }),
        )
    };
    let hostname = ask("hostname", System::host_name());
    let os = ask("os", System::long_os_version());
    let kernel = ask("kernel", System::kernel_version());
    Host { hostname, os, kernel, cpu: processor(), cpus: cpus(), memory_bytes: memory().installed_bytes, missing }
}

/// Processors that this program may use.
pub(super) fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// The processor's name.
pub(super) fn processor() -> String {
    let system = System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()));
    let brand = system.ok().and_then(|s| s.cpus().first().map(|cpu| cpu.brand().split_whitespace().collect::<Vec<_>>().join(" ")));
    // Arm processors often have no name to tell.
    brand.filter(|brand| !brand.is_empty()).unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

/// Main memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MainMemory {
    /// What the system has.
    pub installed_bytes: u64,
    /// What this program may use at most.
    pub total_bytes: u64,
    /// What it could use now, caches of files that would make room included.
    pub available_bytes: u64,
}

/// Main memory now; a control group's limit counts as its end.
pub(super) fn memory() -> MainMemory {
    let ram = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let Ok(mut system) = System::new_with_specifics(ram) else {
        return MainMemory { installed_bytes: 0, total_bytes: 0, available_bytes: 0 };
    };
    let mut memory = MainMemory {
        installed_bytes: system.total_memory(),
        total_bytes: system.total_memory(),
        available_bytes: system.available_memory(),
    };
    let own = sysinfo::get_current_pid().ok();
    if let Some(own) = own {
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, ProcessRefreshKind::nothing());
    }
    // The group of this process, and that at the root of what a container sees.
    let of_process = own.and_then(|own| system.process(own)?.cgroup_limits());
    for limit in [of_process, system.cgroup_limits()].into_iter().flatten() {
        memory.total_bytes = memory.total_bytes.min(limit.total_memory);
        // Not the group's own "free": cached files count as used there, but make room.
        memory.available_bytes = memory.available_bytes.min(limit.total_memory.saturating_sub(limit.rss));
    }
    memory
}

/// The node of main memory that the device at this PCI address, such as `00000000:05:00.0`, hangs on; none where the
/// system has no nodes or does not tell.
pub(super) fn numa_node(pci_address: &str) -> Option<u32> {
    // The system writes the domain in four digits, NVML in eight.
    let address = pci_address.strip_prefix("0000").unwrap_or(pci_address);
    std::fs::read_to_string(format!("/sys/bus/pci/devices/{address}/numa_node")).ok()?.trim().parse().ok()
}

/// What lies between this program and the hardware, given what the device knows of its own sharing.
pub fn virtualization(
    vgpu: Result<String, String>,
    mig_enabled: Result<bool, String>,
    mig_profile: Result<String, String>,
) -> Virtualization {
    let mut missing = Missing::new();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let exists = |path: &str| std::path::Path::new(path).exists();
    let version = read("/proc/version");
    let dmi = ["sys_vendor", "product_name"].map(|name| read(&format!("/sys/class/dmi/id/{name}")));
    let virtual_machine = virtual_machine(hypervisor_bit(), &read("/proc/cpuinfo"), &dmi.join("\n"));
    let (variable, cgroup) = (std::env::var("container").unwrap_or_default(), read("/proc/1/cgroup"));
    let container = if cfg!(target_os = "linux") {
        Ok(container(&Clues {
            version: &version,
            variable: &variable,
            kubernetes: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            dockerenv: exists("/.dockerenv"),
            containerenv: exists("/run/.containerenv"),
            cgroup: &cgroup,
        })
        .to_owned())
    } else {
        Err(format!("not looked for on {}", std::env::consts::OS))
    };
    Virtualization {
        virtual_machine: known(&mut missing, "virtual_machine", virtual_machine),
        container: known(&mut missing, "container", container),
        wsl: Some(is_wsl(&version)),
        vgpu: known(&mut missing, "vgpu", vgpu),
        mig_enabled: known(&mut missing, "mig_enabled", mig_enabled),
        mig_profile: known(&mut missing, "mig_profile", mig_profile),
        missing,
    }
}

/// The bit that hypervisors set in what the processor says of itself (CPUID leaf 1,
/// bit 31 of ECX); none on processors that have no such thing.
fn hypervisor_bit() -> Option<bool> {
    #[cfg(target_arch = "x86_64")]
    return Some(std::arch::x86_64::__cpuid(1).ecx >> 31 == 1);
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Whether a hypervisor is underneath, from the processor's own word, `/proc/cpuinfo`,
/// and the names that the firmware gives the machine.
fn virtual_machine(bit: Option<bool>, cpuinfo: &str, dmi: &str) -> Result<bool, String> {
    // Names of virtual hardware alone: "Amazon EC2" and "Google" are on whole machines too.
    const NAMES: [&str; 10] =
        ["qemu", "kvm", "vmware", "virtualbox", "virtual machine", "bochs", "xen", "parallels", "openstack", "google compute engine"];
    let flag = cpuinfo.lines().any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"));
    let dmi = dmi.to_lowercase();
    if flag || NAMES.iter().any(|name| dmi.contains(name)) {
        return Ok(true);
    }
    let known = bit.or((!dmi.trim().is_empty()).then_some(false));
    known.ok_or_else(|| "neither the processor nor the firmware tells".into())
}

/// What a container leaves to be seen inside.
#[derive(Debug, Clone, Copy, Default)]
struct Clues<'a> {
    /// `/proc/version`.
    version: &'a str,
    /// The variable `container`, which systemd, LXC and Podman set.
    variable: &'a str,
    /// Whether Kubernetes has told the program where its server is.
    kubernetes: bool,
    /// Whether `/.dockerenv` exists.
    dockerenv: bool,
    /// Whether `/run/.containerenv` exists.
    containerenv: bool,
    /// `/proc/1/cgroup`.
    cgroup: &'a str,
}

/// The kind of container; `none` when nothing hints at one. What says most about
/// performance comes first: gVisor answers system calls itself.
fn container<'a>(clues: &Clues<'a>) -> &'a str {
    // The build that gVisor shows in place of a kernel's, the same in all its releases.
    const GVISOR_BUILD: &str = "#1 SMP Sun Jan 10 15:06:54 PST 2016";
    const IN_CGROUP: [(&str, &str); 6] = [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
        ("machine.slice", "systemd-nspawn"),
    ];
    if clues.version.contains(GVISOR_BUILD) {
        return "gvisor";
    }
    if clues.kubernetes {
        return "kubernetes";
    }
    if !clues.variable.is_empty() {
        return clues.variable;
    }
    if let Some((_, kind)) = IN_CGROUP.iter().find(|(word, _)| clues.cgroup.contains(word)) {
        return kind;
    }
    match (clues.dockerenv, clues.containerenv) {
        (true, _) => "docker",
        (_, true) => "podman",
        _ => "none",
    }
}

/// Whether `/proc/version` is that of Linux under Windows.
fn is_wsl(version: &str) -> bool {
    version.to_lowercase().contains("microsoft")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UBUNTU: &str = "Linux version 6.8.0-45-generic (buildd@lcy02-amd64-115) (x86_64-linux-gnu-gcc-13) #45-Ubuntu SMP";

    #[test]
    fn a_hypervisor_shows_in_the_flags_or_in_the_names_of_the_machine() {
        let cpuinfo = "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\n";
        assert_eq!(virtual_machine(None, cpuinfo, ""), Ok(true));
        assert_eq!(virtual_machine(Some(true), "", ""), Ok(true));
        assert_eq!(virtual_machine(None, "Features\t: fp asimd\n", "QEMU\nQEMU Virtual Machine\n"), Ok(true));
        assert_eq!(virtual_machine(None, "", "Microsoft Corporation\nVirtual Machine\n"), Ok(true));
    }

    #[test]
    fn whole_machines_of_a_cloud_are_no_virtual_machines() {
        assert_eq!(virtual_machine(Some(false), "flags\t\t: fpu vme\n", "Amazon EC2\nc7i.metal-24xl\n"), Ok(false));
        assert_eq!(virtual_machine(None, "", "Ampere(R)\nMt. Jade\n"), Ok(false));
    }

    #[test]
    fn a_machine_that_tells_nothing_is_unknown() {
        assert!(virtual_machine(None, "", "\n").is_err());
    }

    #[test]
    fn containers_are_named_by_what_they_leave_behind() {
        let clues = Clues { version: UBUNTU, cgroup: "0::/init.scope\n", ..Clues::default() };
        assert_eq!(container(&clues), "none");
        assert_eq!(container(&Clues { dockerenv: true, ..clues }), "docker");
        assert_eq!(container(&Clues { containerenv: true, ..clues }), "podman");
        assert_eq!(container(&Clues { variable: "lxc", ..clues }), "lxc");
        assert_eq!(container(&Clues { kubernetes: true, dockerenv: true, ..clues }), "kubernetes");
        let pods = "11:memory:/kubepods/burstable/pod3f1c/5e0a\n";
        assert_eq!(container(&Clues { cgroup: pods, ..clues }), "kubernetes");
        let docker = "12:cpuset:/docker/4c1ab6e3\n";
        assert_eq!(container(&Clues { cgroup: docker, ..clues }), "docker");
    }

    #[test]
    fn gvisor_shows_a_build_of_its_own() {
        for release in ["4.4.0", "4.19.0-gvisor"] {
            let version = format!("Linux version {release} #1 SMP Sun Jan 10 15:06:54 PST 2016\n");
            assert_eq!(container(&Clues { version: &version, dockerenv: true, ..Clues::default() }), "gvisor");
        }
    }

    #[test]
    fn linux_under_windows_names_its_maker() {
        assert!(is_wsl("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1) (gcc (GCC) 11.2.0)"));
        assert!(!is_wsl(UBUNTU));
    }

    #[test]
    fn each_null_has_a_reason() {
        let host = serde_json::to_value(host()).unwrap();
        let virtualization =
            serde_json::to_value(virtualization(Ok("none".into()), Err("not asked".into()), Err("not asked".into()))).unwrap();
        for object in [host, virtualization] {
            for (field, value) in object.as_object().unwrap() {
                assert!(!value.is_null() || object["missing"][field].is_string(), "{field}");
            }
        }
    }

    #[test]
    fn memory_that_is_available_is_part_of_the_whole() {
        let memory = memory();
        assert!(memory.available_bytes > 0);
        assert!(memory.available_bytes <= memory.total_bytes && memory.total_bytes <= memory.installed_bytes);
    }
}
