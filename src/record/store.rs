//! Saving and loading documents.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use atomic_write_file::AtomicWriteFile;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::ser::PrettyFormatter;
use serde_json::value::RawValue;

use super::{Claims, Run, SCHEMA_VERSION, version::major};

/// The document's name in a run's folder.
pub const DOCUMENT_NAME: &str = "run.json";

/// Why a document could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The folder cannot be written, or the disk is full.
    #[error("cannot write {}: {source}; what was there before, if anything, is unchanged", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another program measures into this folder.
    #[error("another hbmark is measuring into {}; wait until it has ended", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A document has this name already.
    #[error("{} is there already and stays as it is; choose another folder", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder without a document.
    #[error("{} holds no {DOCUMENT_NAME}; name a run's folder, or the .json files themselves", path.display())]
    NoDocument {
        /// The folder.
        path: PathBuf,
    },
    /// The text is not JSON, or ends early.
    #[error("{} is not a whole JSON document: {message}{}", path.display(), if *cut_off { "; the file seems to be cut off: copy it again from where it came" } else { "" })]
    NotJson {
        /// The file.
        path: PathBuf,
        /// What the parser said, with line and column.
        message: String,
        /// Whether the text ended inside a value.
        cut_off: bool,
    },
    /// JSON, but not a run document.
    #[error("{} is JSON but no hbmark run document: {message}", path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
        /// What is missing or wrong.
        message: String,
    },
    /// Written by a newer program.
    #[error("{} has schema version {found}, and this program reads major version {} and below: use a newer hbmark", path.display(), major(SCHEMA_VERSION).unwrap_or_default())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The document's version.
        found: String,
    },
}

/// Replaces a file whole or not at all, making its folder if need be: a reader never
/// sees half of it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = AtomicWriteFile::open(path)?;
    file.write_all(bytes)?;
    file.commit()
}

fn text(run: &Run) -> std::io::Result<Vec<u8>> {
    // A line for each value, and none of the indentation, which would be a quarter of a long document.
    let mut text = Vec::new();
    run.serialize(&mut serde_json::Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"")))?;
    text.push(b'\n');
    Ok(text)
}

/// Writes a new document, making its folder. Of two programs that choose the same name, one succeeds.
///
/// # Errors
/// When a document has the name already, or the folder cannot be made or written.
pub fn create(run: &Run, path: &Path) -> Result<(), SaveError> {
    let write = || -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        // As readable as any other new file, not for its owner alone.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        // The bare cause: the temporary name says nothing to the user.
        let bare = |error: std::io::Error| std::io::Error::from(error.kind());
        let mut file = builder.tempfile_in(folder).map_err(bare)?;
        file.write_all(&text(run)?)?;
        file.persist_noclobber(path)?;
        Ok(())
    };
    write().map_err(|source| match source.kind() {
        // The folder itself may be in the way too: a file of its name.
        ErrorKind::AlreadyExists if path.exists() => SaveError::Exists { path: path.to_owned() },
        _ => SaveError::Unwritable { path: path.to_owned(), source },
    })
}

/// Replaces a document whole or not at all.
///
/// # Errors
/// When the folder cannot be written or the disk is full.
pub fn save(run: &Run, path: &Path) -> Result<(), SaveError> {
    let write = || write_whole(path, &text(run)?);
    write().map_err(|source| SaveError::Unwritable { path: path.to_owned(), source })
}

/// A run's folder, taken as long as this lives; a process that is killed gives it back.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "open files are locked")] Option<File>);

/// Takes a run's folder: of two programs that would change one document, one succeeds.
///
/// Where the system locks no folders, Windows or a network's say, nobody is kept out.
///
/// # Errors
/// When another program has it.
pub fn hold(folder: &Path) -> Result<Held, SaveError> {
    let Ok(file) = File::open(folder) else { return Ok(Held(None)) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(SaveError::InUse { path: folder.to_owned() }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Held(Some(file))),
    }
}

/// The document that `path` names: the file itself, or the one in that folder.
///
/// # Errors
/// When a folder holds none.
pub fn find(path: &Path) -> Result<PathBuf, LoadError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let document = path.join(DOCUMENT_NAME);
    if document.is_file() { Ok(document) } else { Err(LoadError::NoDocument { path: path.to_owned() }) }
}

/// Reads the document of a file or of a run's folder.
///
/// # Errors
/// When there is none, or it is not one run document that this program can read.
pub fn load(path: &Path) -> Result<Run, LoadError> {
    let (bytes, path) = read(path)?;
    let mut run: Run = parse(&bytes, &path)?;
    run.explain_absent();
    Ok(run)
}

/// Reads every document of a file: one, or an array as `--format json` prints it.
///
/// # Errors
/// As [`load`], for the first that cannot be read.
pub fn load_all(path: &Path) -> Result<Vec<Run>, LoadError> {
    let mut runs: Vec<Run> = each(path)?;
    runs.iter_mut().for_each(Run::explain_absent);
    Ok(runs)
}

/// Reads what every document of a file claims, with no more of it than is needed to judge it.
///
/// # Errors
/// As [`load_all`]; fields that only a whole document has may be absent.
pub fn load_claims(path: &Path) -> Result<Vec<Claims>, LoadError> {
    each(path)
}

fn each<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, LoadError> {
    let (bytes, path) = read(path)?;
    if !bytes.trim_ascii_start().starts_with(b"[") {
        return Ok(vec![parse(&bytes, &path)?]);
    }
    let documents: Vec<&RawValue> = serde_json::from_slice(&bytes).map_err(|error| not_read(error, &path))?;
    documents.iter().map(|document| parse(document.get().as_bytes(), &path)).collect()
}

fn read(path: &Path) -> Result<(Vec<u8>, PathBuf), LoadError> {
    let path = find(path)?;
    match std::fs::read(&path) {
        Ok(bytes) => Ok((bytes, path)),
        Err(source) => Err(LoadError::Unreadable { path, source }),
    }
}

fn not_read(error: serde_json::Error, path: &Path) -> LoadError {
    let (path, message) = (path.to_owned(), error.to_string());
    match error.classify() {
        serde_json::error::Category::Data => LoadError::NotARun { path, message },
        _ => LoadError::NotJson { path, message, cut_off: error.is_eof() },
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8], path: &Path) -> Result<T, LoadError> {
    // The version first: a newer document may lack what this program expects,
    // and then "too new" is the reason to give.
    #[derive(Deserialize)]
    struct Versioned {
        schema_version: Option<String>,
    }
    let not_a_run = |message: String| LoadError::NotARun { path: path.to_owned(), message };
    let Versioned { schema_version } = serde_json::from_slice(bytes).map_err(|error| not_read(error, path))?;
    let found = schema_version.ok_or_else(|| not_a_run("it has no schema_version".into()))?;
    match major(&found) {
        None => Err(not_a_run(format!("schema_version '{found}' is not a dotted number"))),
        Some(m) if Some(m) > major(SCHEMA_VERSION) => Err(LoadError::TooNew { path: path.to_owned(), found }),
        Some(_) => serde_json::from_slice(bytes).map_err(|error| not_read(error, path)),
    }
}
