//! How a list is asked: as a request asks it, or without leaving a trace.

use super::{Index, Matchable};
use crate::condition::RequestView;

/// A way to ask an [`Index`]. What serves requests and what explains them differ in this alone.
pub trait Search {
    /// The entry that applies to the request, if any.
    fn search<'m, M, V>(&self, index: &'m Index<M>, view: &V) -> Option<&'m M>
    where
        M: Matchable + Clone + Send + Sync + 'static,
        V: RequestView + ?Sized;
}

/// As a request asks: by [`Index::find`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Live;

/// Without a trace: by [`Index::look`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Look;

impl Search for Live {
    fn search<'m, M, V>(&self, index: &'m Index<M>, view: &V) -> Option<&'m M>
    where
        M: Matchable + Clone + Send + Sync + 'static,
        V: RequestView + ?Sized,
    {
        index.find(view)
    }
}

impl Search for Look {
    fn search<'m, M, V>(&self, index: &'m Index<M>, view: &V) -> Option<&'m M>
    where
        M: Matchable + Clone + Send + Sync + 'static,
        V: RequestView + ?Sized,
    {
        index.look(view)
    }
}
