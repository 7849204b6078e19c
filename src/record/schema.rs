//! The document's form for other programs: its JSON Schema.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Run, SCHEMA_VERSION};

/// The JSON Schema (draft 2020-12) of the documents that this version of the program reads and
/// writes; each field's comment is its description.
///
/// Fields that it does not name are allowed, as later minor versions may add some.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Run>();
    schema.insert("title".into(), format!("hbmark run document, schema version {SCHEMA_VERSION}").into());
    schema.to_value()
}
