//! Registered APIs by path.

use std::collections::HashMap;
use std::sync::Arc;

use crate::condition::{AntPattern, Compiler};
use crate::model::MetaData;

/// Looks up which registered API a path belongs to.
///
/// An exact path wins over patterns; among patterns the longest literal prefix, then the lowest id.
/// A disabled exact record hides patterns, as in the reference; among patterns only enabled ones
/// count. No memo of paths: nothing grows with what clients send.
///
/// Source: ShenYu 2.7.1, metadata store; there the order among patterns is undefined.
#[derive(Debug, Default)]
pub struct MetadataIndex {
    exact: HashMap<Box<str>, Arc<MetaData>, foldhash::fast::RandomState>,
    patterns: Vec<(AntPattern, Arc<MetaData>)>,
}

impl MetadataIndex {
    /// Builds the index; records whose pattern cannot be read are left out and returned.
    pub(super) fn build<'a>(
        records: impl Iterator<Item = &'a Arc<MetaData>>,
        compiler: &mut Compiler,
    ) -> (Self, Vec<(String, String)>) {
        let mut index = Self::default();
        let mut faults = Vec::new();
        for record in records {
            if !record.path.contains('*') {
                index.exact.insert(record.path.as_str().into(), Arc::clone(record));
            } else if record.enabled {
                match compiler.ant_pattern(&record.path) {
                    Ok(pattern) => index.patterns.push((pattern, Arc::clone(record))),
                    Err(text) => faults.push((record.id.clone(), text)),
                }
            }
        }
        index.patterns.sort_by(|(_, a), (_, b)| {
            let prefix = |record: &MetaData| record.path.find(['*', '?', '{']).unwrap_or_default();
            prefix(b).cmp(&prefix(a)).then_with(|| a.id.as_bytes().cmp(b.id.as_bytes()))
        });
        (index, faults)
    }

    /// The enabled record of a raw path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Arc<MetaData>> {
        if self.exact.is_empty() && self.patterns.is_empty() {
            return None;
        }
        if let Some(record) = self.exact.get(path) {
            return record.enabled.then_some(record);
        }
        self.patterns.iter().find(|(pattern, _)| pattern.matches(path)).map(|(_, record)| record)
    }
}
