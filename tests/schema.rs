//! The document's form as it is published: `schema/run.schema.json` for programs, `SCHEMA.md` for people.
//!
//! `HBMARK_UPDATE=1 cargo test --test schema` makes both anew from the types and their comments.

mod common;

use std::path::Path;

use common::{documents, root, unexplained};
use hbmark::measure::statistics;
use hbmark::record::{self, Status, schema};
use serde_json::Value;

const REGENERATE: &str = "run: HBMARK_UPDATE=1 cargo test --test schema";

/// Whether a committed file holds `current`; it does after an update.
fn is_current(path: &Path, current: &str) -> bool {
    if std::env::var_os("HBMARK_UPDATE").is_some() {
        std::fs::write(path, current).expect("the file is writable");
    }
    std::fs::read_to_string(path).is_ok_and(|text| text == current)
}

#[test]
fn the_committed_schema_is_what_the_types_give() {
    let text = format!("{}\n", serde_json::to_string_pretty(&schema()).expect("JSON"));
    assert!(is_current(&root().join("schema/run.schema.json"), &text), "{REGENERATE}");
}

#[test]
fn every_recorded_document_has_the_form_of_the_schema() {
    let validator = jsonschema::validator_for(&schema()).expect("the schema is one");
    for path in documents() {
        let document: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
}

#[test]
fn every_null_of_a_recorded_document_has_a_reason_and_no_word_stands_for_one() {
    for path in documents() {
        let run = record::load(&path).unwrap_or_else(|error| panic!("{error}"));
        // As it was written, and as an array of documents has it today: with the fields that came later.
        let written = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        for document in [written, serde_json::to_value(run).expect("JSON")] {
            assert_eq!(unexplained(&document), [""; 0], "{}", path.display());
        }
    }
}

#[test]
fn every_recorded_document_says_what_was_measured_on_which_machine_and_by_what() {
    for path in documents() {
        let run = record::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let known = [run.host.cpu, run.program.version, run.program.target, run.suite_version, run.device.name, run.started_at];
        assert!(known.iter().all(|text| !text.is_empty()) && run.host.memory_bytes > 0 && run.host.cpus > 0, "{}", path.display());
    }
}

#[test]
fn every_recorded_row_with_figures_has_samples_and_its_times_are_theirs() {
    for path in documents() {
        let rows = record::load(&path).unwrap_or_else(|error| panic!("{error}")).measurements;
        for row in rows.into_iter().filter(|row| row.status == Status::Ok) {
            let time = row.time_ns.expect("times");
            let sorted = statistics::sorted(&row.samples_ns);
            let of_samples = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| statistics::quantile(&sorted, share));
            assert_eq!([time.min, time.p25, time.median, time.p75, time.max], of_samples, "{}: {}", path.display(), row.id);
            assert_eq!((time.n as usize, time.noise_fraction), (sorted.len(), statistics::median_noise(&row.samples_ns)), "{}", row.id);
            assert!(!row.variant.is_empty() && !row.parameters.is_empty(), "{} does not say how it was measured", row.id);
        }
    }
}

#[test]
fn a_document_with_a_field_of_another_type_has_not_the_form_of_the_schema() {
    let validator = jsonschema::validator_for(&schema()).expect("the schema is one");
    let text = std::fs::read_to_string(common::recorded()).expect("the recorded run");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    for (field, wrong) in [("/measurements/0/achieved_gbps", "fast"), ("/device/kind", "abacus"), ("/measurements/0/verdict", "splendid")] {
        let mut document = document.clone();
        *document.pointer_mut(field).expect(field) = wrong.into();
        assert!(!validator.is_valid(&document), "{field}");
    }
}

/// Words by which a description tells a unit.
const UNITS: [&str; 13] = ["B/s", "flops/s", "bytes", "KiB", "bits", "MHz", "ns", "s", "W", "°C", "J", "pJ", "fraction"];

fn tells_a_unit(description: &str) -> bool {
    description.split_whitespace().any(|word| UNITS.contains(&word.trim_end_matches([',', '.', ':', ';'])))
}

#[test]
fn every_measured_number_says_its_unit() {
    for (object, fields) in objects(&schema()) {
        for (field, form) in fields {
            let measured = form["format"] == "double" || field.ends_with("_bytes") || field.ends_with("_bits");
            assert!(!measured || tells_a_unit(&description(&form)), "{object}.{field}: {}", description(&form));
        }
    }
}

#[test]
fn every_object_and_field_says_what_it_is() {
    for (object, fields) in objects(&schema()) {
        for (field, form) in fields {
            assert!(!description(&form).is_empty(), "{object}.{field}");
        }
    }
}

/// The objects of the schema by name, the document first, each with its fields in order.
fn objects(schema: &Value) -> Vec<(String, Vec<(String, Value)>)> {
    let fields = |form: &Value| {
        form["properties"].as_object().map(|fields| fields.iter().map(|(name, form)| (name.clone(), form.clone())).collect::<Vec<_>>())
    };
    let parts = schema["$defs"].as_object().expect("parts");
    let document = [("Run".to_owned(), fields(schema).expect("fields"))];
    document.into_iter().chain(parts.iter().filter_map(|(name, form)| Some((name.clone(), fields(form)?)))).collect()
}

/// A description on one line, as Markdown takes it in a table.
fn description(form: &Value) -> String {
    form["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The type of a field in a word or two, with a link where it is an object of its own.
fn kind(form: &Value) -> String {
    if let Some(name) = form["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(forms) = form["anyOf"].as_array() {
        return forms.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let one = |name: &str| match name {
        "array" => format!("list of {}", kind(&form["items"])),
        "object" if form["additionalProperties"].is_object() => format!("map to {}", kind(&form["additionalProperties"])),
        name => name.to_owned(),
    };
    match &form["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(one).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

/// `SCHEMA.md` below its marker: a table for each object, and the words of each enumeration.
fn tables(schema: &Value) -> String {
    let mut text = String::new();
    for (object, fields) in objects(schema) {
        let form = if object == "Run" { schema } else { &schema["$defs"][&object] };
        text += &format!("\n## {object}\n\n{}\n\n| field | type | meaning |\n|---|---|---|\n", description(form));
        for (field, form) in fields {
            text += &format!("| `{field}` | {} | {} |\n", kind(&form), description(&form));
        }
    }
    for (name, form) in schema["$defs"].as_object().expect("parts") {
        let Some(words) = form["oneOf"].as_array() else { continue };
        text += &format!("\n## {name}\n\n{}\n\n| value | meaning |\n|---|---|\n", description(form));
        for word in words {
            text += &format!("| `{}` | {} |\n", word["const"].as_str().expect("a word"), description(word));
        }
    }
    text
}

#[test]
fn the_page_of_the_schema_has_every_field_as_the_types_describe_it() {
    const MARKER: &str = "<!-- made from the types: HBMARK_UPDATE=1 cargo test --test schema -->\n";
    let path = root().join("SCHEMA.md");
    let page = std::fs::read_to_string(&path).expect("SCHEMA.md");
    let (words, _) = page.split_once(MARKER).expect("the marker");
    assert!(is_current(&path, &format!("{words}{MARKER}{}", tables(&schema()))), "{REGENERATE}");
}
