#!/usr/bin/env python3
"""Rebuild or check the PTX that ships beside each kernel source.

    python3 kernels/build.py                    rebuild every <pattern>.<target>.ptx
    python3 kernels/build.py --check            change nothing; fail if a file is not what its source gives
    python3 kernels/build.py --only stream      the same for one pattern (may be repeated)

Neither a GPU nor a CUDA toolkit is needed: the compilers are wheels with pinned versions and pinned
hashes, installed on first use into a folder of their own. README.md beside this file tells the rest.

Exit code: 0 all is well, 1 some file has a problem, 2 nothing could be built or checked.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import dataclasses
import difflib
import hashlib
import itertools
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

KERNELS = Path(__file__).resolve().parent

REBUILD = "python3 kernels/build.py"


# --- what is pinned ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Wheel:
    """One published package file for each platform that has one, known by its SHA-256."""

    package: str
    version: str
    sha256: dict[str, str]

    def __str__(self) -> str:
        return f"{self.package}=={self.version}"


@dataclasses.dataclass(frozen=True, eq=False)
class Compiler:
    """An NVRTC release and the PTX ISA version that it writes, which decides the oldest driver that loads it."""

    wheel: Wheel
    ptx_isa: str


# PTX ISA 8.0: every driver from 525 on. Nothing newer can be used for what must run everywhere.
# There is no Linux aarch64 wheel of this release.
NVRTC_12_0 = Compiler(
    Wheel(
        "nvidia-cuda-nvrtc-cu12",
        "12.0.140",
        {
            "linux-x86_64": "8e94e991d85c422de4da87bdc7472fdc1364367bd4aace7000b559cd33122071",
            "windows-x86_64": "5fb35744e31365b684731ca5b52d7fbb429f7dbfa7d0cceeeeeb5e04c73a36fa",
        },
    ),
    ptx_isa="8.0",
)

# PTX ISA 8.4, driver 550 on: the first with fp8 `mma.sync` on compute capability 8.9.
NVRTC_12_4 = Compiler(
    Wheel(
        "nvidia-cuda-nvrtc-cu12",
        "12.4.127",
        {
            "linux-x86_64": "a178759ebb095827bd30ef56598ec182b85547f1508941a3d560eb7ea1fbf338",
            "linux-aarch64": "0eedf14185e04b76aa05b1fea04133e59f465b6f960c0cbf4e37c3cb6b0ea198",
            "windows-x86_64": "a961b2f1d5f17b14867c619ceb99ef6fcec12e46612711bcec78eb05068a60ec",
        },
    ),
    ptx_isa="8.4",
)

# PTX ISA 8.8, driver 575 on: 256-bit loads and the architectures from 10.0 on.
NVRTC_12_9 = Compiler(
    Wheel(
        "nvidia-cuda-nvrtc-cu12",
        "12.9.86",
        {
            "linux-x86_64": "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4",
            "linux-aarch64": "096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead",
            "windows-x86_64": "72972ebdcf504d69462d3bcd67e7b81edd25d0fb85a2c46d3ea3517666636349",
        },
    ),
    ptx_isa="8.8",
)

# The assembler. The last release line that still knows sm_70 and already knows sm_121: 13.x dropped sm_70.
PTXAS = Wheel(
    "nvidia-cuda-nvcc-cu12",
    "12.9.86",
    {
        "linux-x86_64": "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0",
        "linux-aarch64": "44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b",
        "windows-x86_64": "8ed7f0b17dea662755395be029376db3b94fed5cbb17c2d35cc866c5b1b84099",
    },
)

# Every target that a source may name, with the oldest compiler that serves its purpose.
# An `a` target runs on that one compute capability only; a plain one on it and all later ones.
TARGETS = {
    "compute_70": NVRTC_12_0,
    "compute_75": NVRTC_12_0,
    "compute_80": NVRTC_12_0,
    "compute_86": NVRTC_12_0,
    "compute_89": NVRTC_12_4,
    "compute_90": NVRTC_12_0,
    "compute_90a": NVRTC_12_0,
    "compute_100": NVRTC_12_9,
    "compute_100a": NVRTC_12_9,
    "compute_103": NVRTC_12_9,
    "compute_103a": NVRTC_12_9,
    "compute_120": NVRTC_12_9,
    "compute_120a": NVRTC_12_9,
}


class CannotRun(Exception):
    """Nothing can be built or checked here; the text says what is wrong, where, and what to do."""


def indent(text: str) -> str:
    """A tool's own words, set apart from ours."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines())


# --- sources -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A `.cu` file and what the comment at its top declares."""

    pattern: str
    text: str
    targets: tuple[str, ...]
    # Kernels that may spill registers or use a stack frame, said with `// local-memory: NAME ...`.
    local_memory: frozenset[str]


def read_source(path: Path) -> Source:
    """Reads a source and its header lines; raises ValueError where the header is missing or wrong."""
    text = path.read_text(encoding="utf-8")
    header = list(itertools.takewhile(lambda line: not line.strip() or line.startswith("//"), text.splitlines()))

    def declared(key: str) -> tuple[str, ...]:
        found = (re.match(rf"//\s*{key}:(.*)", line) for line in header)
        return tuple(dict.fromkeys(word for match in found if match for word in match[1].split()))

    targets = declared("targets")
    if not targets:
        raise ValueError(
            "does not say what it is built for: add a line such as `// targets: compute_70` "
            "to the comment at its top, before the first line of code"
        )
    for target in targets:
        if target not in TARGETS:
            raise ValueError(f"names an unknown target `{target}`; known: {', '.join(TARGETS)}")
    return Source(path.stem, text, targets, frozenset(declared("local-memory")))


# --- installing the pinned wheels ----------------------------------------------------------------


def this_platform() -> str:
    """Names this machine in the words that the pins use."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{platform.system().lower()}-{machine}"


def environment_folder() -> Path:
    """Where the wheels are kept: `HBMARK_PTX_ENV`, or a cache folder that changes when a pin does."""
    override = os.environ.get("HBMARK_PTX_ENV")
    if override:
        return Path(override).expanduser().resolve()
    pins = repr([NVRTC_12_0, NVRTC_12_4, NVRTC_12_9, PTXAS])
    key = hashlib.sha256(pins.encode()).hexdigest()[:12]
    variable, default = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / default) / f"hbmark-ptx-{key}"


def pip_command(scratch: Path) -> list[str]:
    """A pip to install with: one in a virtual environment made for the purpose, else the one of this Python.

    The wheels themselves go to `--target` folders, because one environment cannot hold two versions of a package.
    """
    made = subprocess.run([sys.executable, "-m", "venv", str(scratch / "venv")], capture_output=True, text=True)
    if made.returncode == 0:
        return [str(scratch / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")), "-m", "pip"]
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True).returncode == 0:
        return own
    raise CannotRun(
        f"{sys.executable} can make no virtual environment and has no pip, so the pinned compilers cannot be "
        "installed.\nInstall one of the two (Debian and Ubuntu: the package python3-venv or python3-pip), or run "
        "this script with another Python (3.9 or newer)."
    )


def install(wheels: list[Wheel]) -> dict[Wheel, Path]:
    """Makes sure that each wheel is unpacked in a folder of its own, and tells where."""
    root = environment_folder()
    folders = {wheel: root / f"{wheel.package}-{wheel.version}" for wheel in wheels}
    missing = [wheel for wheel in wheels if not folders[wheel].is_dir()]
    for wheel in missing:
        if this_platform() not in wheel.sha256:
            raise CannotRun(
                f"{wheel} is published for {', '.join(wheel.sha256)} only, and this machine is {this_platform()}.\n"
                "Run this script on one of those (a container or a virtual machine will do: no GPU is needed)."
            )
    if missing:
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(
                f"cannot make the compilers' folder: {error}.\nSet HBMARK_PTX_ENV to one that can be written."
            ) from error
        with tempfile.TemporaryDirectory(prefix="hbmark-ptx-") as scratch:
            pip = pip_command(Path(scratch))
            for wheel in missing:
                print(f"installing {wheel} into {root}", file=sys.stderr)
                install_one(pip, wheel, folders[wheel], Path(scratch))
    return folders


def install_one(pip: list[str], wheel: Wheel, folder: Path, scratch: Path) -> None:
    """Unpacks one wheel, whose hash pip verifies. The folder appears complete or not at all."""
    requirement = scratch / "requirement.txt"
    requirement.write_text(f"{wheel} --hash=sha256:{wheel.sha256[this_platform()]}\n")
    partial = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
    options = "--quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: --require-hashes".split()
    command = [*pip, "install", *options, "--target", str(partial), "--requirement", str(requirement)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise CannotRun(
                f"pip could not install {wheel} for {this_platform()}:\n{indent(done.stdout)}\n"
                "- Without a network: set HBMARK_PTX_ENV to a folder that this script filled on a machine of the same "
                "kind that has one.\n"
                "- The wheels need glibc on Linux: a musl distribution (Alpine) finds no matching one.\n"
                "- A hash that does not match means that the file is not the one this project was built with: do not "
                "use it."
            )
        try:
            partial.rename(folder)
        except OSError:
            # Another run of this script has finished the same installation in the meantime.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def find_in(folder: Path, *patterns: str) -> Path:
    """The one file of a wheel that matches one of the patterns (its name differs between platforms)."""
    for pattern in patterns:
        for found in folder.glob(pattern):
            return found
    raise CannotRun(f"{folder} is incomplete: no {' or '.join(patterns)}.\nDelete that folder and run again.")


# --- source to PTX -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """One PTX file to make: a source, a target, and every header that an `#include` may name."""

    pattern: str
    target: str
    text: str
    headers: dict[str, str]

    @property
    def file_name(self) -> str:
        return f"{self.pattern}.{self.target}.ptx"


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What NVRTC made of a job: the PTX, or None and the reason."""

    ptx: bytes | None
    reason: str
    seconds: float


def compile_job(library: str, job: Job) -> Compiled:
    """Runs one job through NVRTC, in a worker process.

    The result depends on nothing but the job and the library: headers come from memory, and the program's
    name is a bare file name, so that no path of this machine can reach the PTX.
    """
    began = time.monotonic()
    # NVRTC finds its libnvrtc-builtins beside itself when it is loaded by an absolute path; Windows wants to be told.
    if sys.platform == "win32":
        os.add_dll_directory(os.path.dirname(library))
    nvrtc = ctypes.CDLL(library)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(function: str, *arguments: object) -> None:
        status = getattr(nvrtc, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function}: {nvrtc.nvrtcGetErrorString(status).decode()}")

    def text_of(kind: str) -> bytes:
        size = ctypes.c_size_t()
        call(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call(f"nvrtcGet{kind}", program, buffer)
        return buffer.value

    def strings(values: list[str]) -> ctypes.Array[ctypes.c_char_p]:
        return (ctypes.c_char_p * len(values))(*(value.encode() for value in values))

    program = ctypes.c_void_p()
    names, texts = list(job.headers), list(job.headers.values())
    options = [f"--gpu-architecture={job.target}", "--std=c++17"]
    call(
        "nvrtcCreateProgram",
        *(ctypes.byref(program), job.text.encode(), f"{job.pattern}.cu".encode()),
        *(len(names), strings(texts), strings(names)),
    )
    failure = ""
    try:
        call("nvrtcCompileProgram", program, len(options), strings(options))
    except RuntimeError as error:
        failure = str(error)
    log = text_of("ProgramLog").decode(errors="replace").strip()
    # NVRTC 12.0 has no option that turns warnings into errors, and its log is empty when there are none.
    if failure or log:
        return Compiled(None, log or failure, time.monotonic() - began)
    return Compiled(text_of("PTX"), "", time.monotonic() - began)


def compile_all(jobs: list[Job], folders: dict[Wheel, Path], workers: int) -> dict[Job, Compiled]:
    """Compiles every job, one pool of processes a compiler: two NVRTC releases must not share a process."""
    results = {}
    for compiler in dict.fromkeys(TARGETS[job.target] for job in jobs):
        own = [job for job in jobs if TARGETS[job.target] is compiler]
        folder = folders[compiler.wheel]
        library = find_in(folder, "nvidia/cuda_nvrtc/lib/libnvrtc.so.*", "nvidia/cuda_nvrtc/bin/nvrtc64_*_0.dll")
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(min(workers, len(own)), mp_context=context) as pool:
            futures = {job: pool.submit(compile_job, str(library), job) for job in own}
            for job, future in futures.items():
                try:
                    results[job] = future.result()
                except BrokenProcessPool:
                    results[job] = Compiled(None, f"{compiler.wheel} crashed on this source or on one beside it", 0.0)
                except OSError as error:
                    raise CannotRun(f"cannot load {library}: {error}.\nDelete {folder} and run again.") from error
    return results


def ptx_isa(ptx: bytes) -> str:
    """The PTX ISA version that a file declares."""
    found = re.search(rb"^\.version\s+(\S+)", ptx, re.MULTILINE)
    return found[1].decode() if found else "?"


def entries(ptx: bytes) -> int:
    """How many kernels a file holds."""
    return len(re.findall(rb"^(?:\.\w+ )?\.entry\s", ptx, re.MULTILINE))


# --- PTX to machine code -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Assembled:
    """What ptxas said about one file for one architecture."""

    architecture: str
    # Its error text; empty where the file assembled.
    error: str
    warnings: tuple[str, ...]
    # Bytes of (stack frame, spill stores, spill loads) of each function that uses local memory at all.
    local_memory: dict[str, tuple[int, int, int]]
    seconds: float


def known_architectures(ptxas: Path) -> list[str]:
    """Every architecture that this ptxas can make code for, oldest first."""
    try:
        text = subprocess.run([str(ptxas), "--help"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotRun(f"cannot run {ptxas}: {error}.\nDelete {ptxas.parents[3]} and run again.") from error
    found = sorted({(int(number), suffix) for number, suffix in re.findall(r"'sm_(\d+)([a-z]?)'", text)})
    return [f"sm_{number}{suffix}" for number, suffix in found]


def allowed_architectures(target: str, known: list[str]) -> list[str]:
    """The architectures that PTX for `target` may run on, by the PTX ISA's rule of forward compatibility."""
    own = target.replace("compute_", "sm_")
    if not own[-1].isdigit():
        return [own]
    oldest = int(own[len("sm_") :])
    return [name for name in known if name[-1].isdigit() and int(name[len("sm_") :]) >= oldest]


def assemble(ptxas: Path, file: Path, architecture: str) -> Assembled:
    """Runs ptxas over one file for one architecture; the machine code is thrown away."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hbmark-ptxas-") as scratch:
        command = [str(ptxas), "--verbose", f"--gpu-name={architecture}", file.name, "--output-file"]
        command.append(str(Path(scratch) / "out.cubin"))
        # Run beside the file, so that messages name it as people know it.
        done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True)
    output = done.stdout + done.stderr
    error = ""
    if done.returncode != 0:
        wrong = [line for line in output.splitlines() if not line.startswith("ptxas info")]
        error = "\n".join(wrong) or f"ptxas ended with code {done.returncode} and no message"
    # "Potential Performance Loss" comes as mere information, but a kernel that it is said of measures something else.
    warnings = re.findall(r"^ptxas (?:warning\b.*|.*Potential Performance Loss.*)$", output, re.MULTILINE)
    usage = (
        r"Function properties for (\S+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    )
    memory = {name: (int(frame), int(stores), int(loads)) for name, frame, stores, loads in re.findall(usage, output)}
    memory = {name: counts for name, counts in memory.items() if any(counts)}
    return Assembled(architecture, error, tuple(warnings), memory, time.monotonic() - began)


def assemble_all(jobs: list[Job], ptxas: Path, workers: int) -> dict[Job, list[Assembled]]:
    """Assembles each file, as it stands, for each architecture that its target allows; nothing for a missing file."""
    known = known_architectures(ptxas)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = {}
        for job in jobs:
            file = KERNELS / job.file_name
            allowed = allowed_architectures(job.target, known) if file.exists() else []
            futures[job] = [pool.submit(assemble, ptxas, file, name) for name in allowed]
        return {job: [future.result() for future in own] for job, own in futures.items()}


def assembly_problems(results: list[Assembled], declared: frozenset[str]) -> list[str]:
    """Says what is wrong with one file's machine code, each thing once, with the architectures that it holds for."""
    seen: dict[str, list[str]] = {}
    for result in results:
        messages = [f"does not assemble:\n{indent(result.error)}"] if result.error else []
        messages += [f"assembles with a warning:\n{indent(warning)}" for warning in result.warnings]
        for function in sorted(result.local_memory.keys() - declared):
            frame, stores, loads = max(other.local_memory.get(function, (0, 0, 0)) for other in results)
            messages.append(
                f"`{function}` uses local memory (at most: stack frame {frame} B, spill stores {stores} B, spill loads "
                f"{loads} B), so it moves bytes that its source does not show. Use fewer registers and no array that "
                f"is indexed at run time, or declare `// local-memory: {function}` in the comment at the source's top"
            )
        for message in messages:
            seen.setdefault(message, []).append(result.architecture)
    return [f"on {' '.join(names)}: {message}" for message, names in seen.items()]


def stale_declarations(source: Source, results: list[Assembled]) -> list[str]:
    """Names what a source declares to use local memory although nothing of it does, anywhere."""
    if any(result.error for result in results):
        return []
    return sorted(source.local_memory - {function for result in results for function in result.local_memory})


# --- the two modes -------------------------------------------------------------------------------


class Findings:
    """Prints each problem as it is found, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, file_name: str, message: str) -> None:
        """Prints one problem with a file of this folder."""
        self.count += 1
        print(f"error: kernels/{file_name}: {message}", file=sys.stderr)


def read_sources(only: list[str], findings: Findings) -> list[Source]:
    """Reads the sources asked for; one with a wrong header becomes a finding."""
    paths = sorted(KERNELS.glob("*.cu"))
    patterns = [path.stem for path in paths]
    for pattern in only:
        if pattern not in patterns:
            raise CannotRun(f"no {pattern}.cu in {KERNELS}; there are: {', '.join(patterns) or 'none'}.")
    if not paths:
        raise CannotRun(f"no kernel sources (*.cu) in {KERNELS}.")
    sources = []
    for path in paths:
        if not only or path.stem in only:
            try:
                sources.append(read_source(path))
            except ValueError as error:
                findings.add(path.name, str(error))
    return sources


def find_orphans(sources: list[Source], only: list[str], findings: Findings) -> None:
    """Names every PTX file that no source accounts for."""
    targets = {source.pattern: source.targets for source in sources}
    for path in sorted(KERNELS.glob("*.ptx")):
        pattern, _, target = path.stem.partition(".")
        if (only and pattern not in only) or target in targets.get(pattern, ()):
            continue
        if not (KERNELS / f"{pattern}.cu").exists():
            findings.add(path.name, f"has no source: there is no {pattern}.cu. Delete it, or bring the source back")
        elif pattern in targets:
            findings.add(path.name, f"is a target that {pattern}.cu does not name. Delete it, or add the target there")


def committed(path: Path) -> bytes | None:
    """A PTX file as it stands, or None. A checkout on Windows may have given it other line ends."""
    return path.read_bytes().replace(b"\r\n", b"\n") if path.exists() else None


def difference(old: bytes, new: bytes) -> str:
    """The first lines of a unified diff."""
    before, after = (side.decode(errors="replace").splitlines() for side in (old, new))
    lines = list(difflib.unified_diff(before, after, "as it stands", "from its source", n=1, lineterm=""))
    shown = 16
    return "\n".join(lines[:shown] + ([f"... and {len(lines) - shown} more lines"] if len(lines) > shown else []))


def settle(job: Job, made: Compiled, check: bool, findings: Findings) -> str:
    """Compares one compiled file with what stands there, writes it unless `check`, and says how it went in a word."""
    path = KERNELS / job.file_name
    compiler = TARGETS[job.target]
    if made.ptx is None:
        findings.add(f"{job.pattern}.cu", f"does not compile cleanly for {job.target}:\n{indent(made.reason)}")
        return "failed"
    if ptx_isa(made.ptx) != compiler.ptx_isa:
        findings.add(
            job.file_name, f"PTX ISA {ptx_isa(made.ptx)}, but {compiler.wheel} was expected to write {compiler.ptx_isa}"
        )
    old = committed(path)
    if old == made.ptx:
        return "same"
    if not check:
        path.write_bytes(made.ptx)
        return "new" if old is None else "rebuilt"
    if old is None:
        findings.add(job.file_name, f"is missing. Run `{REBUILD}` and commit the result")
        return "missing"
    diff = indent(difference(old, made.ptx))
    findings.add(job.file_name, f"is not what its source gives. Run `{REBUILD}` and commit the result\n{diff}")
    return "differs"


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Prints rows as columns: the first two to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    for row in rows:
        cells = (
            cell.ljust(width) if at < 2 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))
        )
        print("  ".join(cells).rstrip())


def summary(job: Job, state: str, seconds: float, results: list[Assembled]) -> tuple[str, ...]:
    """One row of the closing table: the file as it stands now."""
    ptx = committed(KERNELS / job.file_name)
    facts = ("-", "-", "-", "-")
    if ptx is not None:
        good = sum(not result.error for result in results)
        facts = (ptx_isa(ptx), str(entries(ptx)), str(len(ptx)), f"{good} of {len(results)}")
    seconds += sum(result.seconds for result in results)
    return (job.file_name, job.target, *facts, f"{seconds:.1f}", state)


def run(check: bool, only: list[str], workers: int) -> int:
    """Builds or checks, prints what was found and a table, and returns the exit code."""
    began = time.monotonic()
    findings = Findings()
    sources = read_sources(only, findings)
    find_orphans(sources, only, findings)

    headers = {path.name: path.read_text(encoding="utf-8") for path in sorted(KERNELS.glob("*.cuh"))}
    of_source = {
        source: [Job(source.pattern, name, source.text, headers) for name in source.targets] for source in sources
    }
    jobs = [job for own in of_source.values() for job in own]
    # The proof that a build can be repeated: one file of each compiler is made twice.
    firsts = {TARGETS[job.target]: job for job in reversed(jobs)} if check else {}
    again = {job: dataclasses.replace(job) for job in firsts.values()}

    folders = install([*dict.fromkeys(TARGETS[job.target].wheel for job in jobs), PTXAS])
    compiled = compile_all([*jobs, *again.values()], folders, workers)
    states = {job: settle(job, compiled[job], check, findings) for job in jobs}
    for job, repeated in again.items():
        if compiled[job].ptx != compiled[repeated].ptx:
            findings.add(job.file_name, f"{TARGETS[job.target].wheel} made two different files from the same source")

    ptxas = find_in(folders[PTXAS], "nvidia/cuda_nvcc/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas.exe")
    assembled = assemble_all(jobs, ptxas, workers)
    for source, own in of_source.items():
        for job in own:
            for message in assembly_problems(assembled[job], source.local_memory):
                findings.add(job.file_name, message)
        for function in stale_declarations(source, [result for job in own for result in assembled[job]]):
            findings.add(f"{source.pattern}.cu", f"`// local-memory: {function}` is not true of any target: delete it")

    header = ("file", "target", "PTX ISA", "entries", "bytes", "architectures", "seconds", "result")
    print_table([header, *(summary(job, states[job], compiled[job].seconds, assembled[job]) for job in jobs)])
    verdict = f"problems: {findings.count}" if findings.count else "all is well"
    print(f"files: {len(jobs)}, seconds: {time.monotonic() - began:.0f}, {verdict}")
    return 1 if findings.count else 0


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description="Rebuild the PTX beside each kernel source, or check that it is current."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a file is not what its source gives"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="only <PATTERN>.cu; may be repeated"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="run N compilers at a time (default: one a core)",
    )
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error(f"--jobs {arguments.jobs}: must be 1 or more")
    try:
        return run(arguments.check, arguments.only, arguments.jobs)
    except CannotRun as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
