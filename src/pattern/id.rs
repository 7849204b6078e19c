//! Ids of cases: `pattern/part/part`, with `@size` where the size is not the default.

use std::fmt;

/// A parsed case id, such as `stream/copy/f32` or `stream/copy/f32@1000000`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CaseId {
    name: String,
    size: Option<String>,
}

impl CaseId {
    /// Splits an id at `@`; any text is accepted, patterns judge the parts.
    pub fn new(text: &str) -> Self {
        match text.split_once('@') {
            Some((name, size)) => Self { name: name.to_owned(), size: Some(size.to_owned()) },
            None => Self { name: text.to_owned(), size: None },
        }
    }

    /// The id without its size.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text after `@`, if any.
    pub fn size(&self) -> Option<&str> {
        self.size.as_deref()
    }

    /// The first part: the pattern's name.
    pub fn pattern(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The parts after the pattern's name.
    pub fn parts(&self) -> Vec<&str> {
        self.name.split('/').skip(1).collect()
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.size {
            Some(size) => write!(f, "@{size}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_splits_into_pattern_parts_and_size() {
        let id = CaseId::new("stream/copy/f32@4096");
        assert_eq!(id.pattern(), "stream");
        assert_eq!(id.parts(), ["copy", "f32"]);
        assert_eq!(id.size(), Some("4096"));
        assert_eq!(id.to_string(), "stream/copy/f32@4096");
    }

    #[test]
    fn an_id_without_size_names_the_default() {
        assert_eq!(CaseId::new("stride/read/32").size(), None);
        assert_eq!(CaseId::new("stride").parts(), Vec::<&str>::new());
    }
}
