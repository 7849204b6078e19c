//! The children that measure: none outlives its parent, whatever ends that, and the document is
//! whole at any moment.
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{fake_settings, hbmark, hbmark_on_fake, small_run, text};
use hbmark::record::{self, Status};

/// Waits for a fact, with a deadline that only a fault can reach.
fn wait_for(what: &str, fact: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !fact() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes whose environment has this mark: the program and its children, and no other test's.
fn alive(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("the list of processes");
    let marked = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| text(&environment).split('\0').any(|variable| variable == mark))
    };
    processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(marked).collect()
}

fn send(signal: &str, to: &str) {
    assert!(Command::new("kill").args([signal, "--", to]).status().expect("kill runs").success());
}

/// A run that hangs in a driver call of its second case, in a process group of its own.
struct Hanging {
    folder: tempfile::TempDir,
    parent: Child,
    mark: String,
}

impl Hanging {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let once = folder.path().join("once");
        let mark = format!("FAKE_ONCE={}", once.display());
        let parent = Command::new(assert_cmd::cargo::cargo_bin!("hbmark"))
            .args(["run", "stream/write/f32", "copy_engine/d2d", "-o"])
            .arg(folder.path().join("out"))
            .envs(fake_settings())
            .env("FAKE_FAULT", "cuMemcpyDtoDAsync_v2 1 hang")
            .env("FAKE_ONCE", &once)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the program starts");
        wait_for("the hang", || once.exists());
        Self { folder, parent, mark }
    }

    /// How the program ended; its only child must be gone too, and the first case kept.
    fn ended(mut self) -> ExitStatus {
        let status = self.parent.wait().expect("the program ends");
        wait_for("the end of the child", || alive(&self.mark).is_empty());
        let run = record::load(&self.folder.path().join("out")).expect("the document loads");
        assert_eq!(run.measurements.iter().map(|row| row.status).collect::<Vec<_>>(), [Status::Ok]);
        assert!(!run.complete);
        status
    }
}

/// Whether this signal does nothing here, as SIGHUP under `nohup`: programs inherit that.
fn ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("what the system says of this process");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("its ignored signals");
    u64::from_str_radix(mask.trim(), 16).expect("a mask") >> (number - 1) & 1 == 1
}

#[test]
fn a_child_that_hangs_in_a_driver_call_ends_with_its_parent() {
    for (signal, number) in [("-KILL", 9), ("-TERM", 15), ("-HUP", 1)].into_iter().filter(|&(_, number)| !ignored(number)) {
        let hanging = Hanging::start();
        assert_eq!(alive(&hanging.mark).len(), 2);
        send(signal, &hanging.parent.id().to_string());
        assert_eq!(hanging.ended().signal(), Some(number));
    }
}

#[test]
fn a_run_that_is_under_way_cannot_be_completed_by_another_program() {
    let hanging = Hanging::start();
    let mut second = hbmark_on_fake(&[]);
    second.args(["run", "--resume", "-o"]).arg(hanging.folder.path().join("out"));
    second.assert().code(2).stderr(predicates::str::contains("another hbmark is measuring"));
    send("-KILL", &hanging.parent.id().to_string());
    hanging.ended();
}

#[test]
fn the_first_interrupt_waits_for_the_case_and_the_second_ends_at_once() {
    let mut hanging = Hanging::start();
    // As a terminal does: to the whole group, the child included.
    let group = format!("-{}", hanging.parent.id());
    let mut says = BufReader::new(hanging.parent.stderr.take().expect("its standard error")).lines().map_while(Result::ok);
    send("-INT", &group);
    assert!(says.any(|line| line.starts_with("interrupted: ")));
    assert_eq!(alive(&hanging.mark).len(), 2, "the child waits for what its parent decides");
    send("-INT", &group);
    assert_eq!(hanging.ended().code(), Some(130));
}

#[test]
fn an_interrupt_to_the_whole_group_lets_the_run_end_in_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let mut parent = Command::new(assert_cmd::cargo::cargo_bin!("hbmark"))
        .args(["run", "stream", "stride", "--profile", "full", "--device", "host", "-o"])
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("the program starts");
    wait_for("the first row", || record::load(&out).is_ok_and(|run| !run.measurements.is_empty()));
    send("-INT", &format!("-{}", parent.id()));
    assert_eq!(parent.wait().expect("the program ends").code(), Some(130));
    let run = record::load(&out).expect("the document loads");
    assert!(!run.complete && run.finished_at.is_none());
    assert!(run.measurements.iter().all(|row| row.status == Status::Ok));
    assert!(out.join("summary.md").is_file());
}

/// A run of the host twice whose first case has been measured at once, and its folder.
fn at_once() -> (tempfile::TempDir, Child, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mark = format!("HBMARK_TEST_MARK={}", folder.path().display());
    let (name, value) = mark.split_once('=').expect("a variable");
    let parent = Command::new(assert_cmd::cargo::cargo_bin!("hbmark"))
        .args(["run", "stream/read/f32@65536", "stream/write/f32@65536", "stream/copy/f32@65536", "stride/read/64@65536"])
        .args(["--device", "host,host", "--simultaneous", "-o"])
        .arg(folder.path())
        .env(name, value)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("the program starts");
    wait_for("the first case at once", || {
        runs_in(folder.path()).iter().any(|run| run.measurements.iter().any(|row| row.contention.is_some()))
    });
    (folder, parent, mark)
}

fn runs_in(folder: &Path) -> Vec<record::Run> {
    std::fs::read_dir(folder).expect("a folder").flatten().filter_map(|entry| record::load(&entry.path()).ok()).collect()
}

#[test]
fn children_of_devices_that_are_measured_at_once_end_with_their_parent() {
    let (folder, mut parent, mark) = at_once();
    parent.kill().expect("the program is ours");
    parent.wait().expect("the program ends");
    wait_for("the end of the children", || alive(&mark).is_empty());
    let runs = runs_in(folder.path());
    assert!(runs.len() == 2 && runs.iter().all(|run| !run.complete && run.measurements.len() == 4));
}

#[test]
fn an_interrupt_while_devices_are_measured_at_once_keeps_their_rows_and_what_was_finished() {
    let (folder, mut parent, mark) = at_once();
    send("-INT", &format!("-{}", parent.id()));
    assert_eq!(parent.wait().expect("the program ends").code(), Some(130));
    assert!(alive(&mark).is_empty());
    for run in runs_in(folder.path()) {
        assert!(!run.complete && run.finished_at.is_none());
        assert!(run.measurements.iter().all(|row| row.status == Status::Ok));
        assert!(run.measurements[0].contention.is_some() && run.measurements[3].contention.is_none());
    }
}

#[test]
fn a_child_without_a_request_says_whose_part_it_is() {
    hbmark().arg("child").write_stdin("{}\n").assert().code(2).stderr(predicates::str::contains("a part of 'hbmark run'"));
    assert!(!text(&hbmark().arg("--help").output().expect("the program starts").stdout).contains("child"));
}

/// Kills this many runs, each at another moment: `HBMARK_KILLS=500` for a thorough search.
fn kills() -> u32 {
    std::env::var("HBMARK_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

#[test]
fn a_run_killed_at_any_moment_leaves_a_document_that_loads_and_can_be_completed() {
    const CASES: [&str; 2] = ["stream/write/f32@65536", "stride/read/64@65536"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = Instant::now();
    small_run(&folder.path().join("whole"), &CASES).assert().code(0);
    let whole = whole.elapsed();
    let kills = kills();
    let mut loaded = 0;
    for nth in 0..kills {
        let out = folder.path().join(nth.to_string());
        let mark = format!("HBMARK_TEST_MARK={}", out.display());
        let (name, value) = mark.split_once('=').expect("a variable");
        let mut parent = Command::new(assert_cmd::cargo::cargo_bin!("hbmark"))
            .arg("run")
            .args(CASES)
            .args(["--device", "host", "-o"])
            .arg(&out)
            .env(name, value)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        // Evenly over the time of a run; where it falls in the course of this one is chance.
        std::thread::sleep(whole * nth / kills);
        // SIGKILL; one that has ended meanwhile is as good.
        parent.kill().expect("the program is ours");
        parent.wait().expect("the program ends");
        wait_for("the end of the child", || alive(&mark).is_empty());
        complete(&out, &CASES, &mut loaded);
        std::fs::remove_dir_all(&out).expect("the run's folder");
    }
    println!("{kills} runs killed over {} ms; {loaded} had a document", whole.as_millis());
}

/// Completes what a killed run left, if it left anything.
fn complete(out: &Path, cases: &[&str], loaded: &mut u32) {
    let mut command = small_run(out, cases);
    let before = out.join("run.json").exists().then(|| record::load(out).unwrap_or_else(|error| panic!("{error}")));
    if before.is_some() {
        *loaded += 1;
        command.arg("--resume");
    }
    command.assert().code(0);
    let run = record::load(out).expect("the document loads");
    assert!(run.complete);
    assert_eq!(run.measurements.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), cases);
    for row in before.iter().flat_map(|run| &run.measurements) {
        assert!(run.measurements.contains(row), "{} was not kept", row.id);
    }
}
